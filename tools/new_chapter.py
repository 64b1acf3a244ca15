"""Makes the skeleton of a chapter, as `make chapter PART=… NAME=…` asks for it.

    tools/new_chapter.py data_parallel gossip           notebook, exercises, contents
    tools/new_chapter.py data_parallel gossip --lesson   a lesson of the library, too

It writes `chapters/PART/NAME.ipynb`, `exercisekit/PART/NAME.py` and, for a lesson,
`d2l_ext/PART/NAME.py` with `tests/PART/test_NAME.py` and its line in the table of
`d2l_ext/PART/__init__.py`; it adds the chapter to `_toc.yml`. The words to replace
are in capitals.
"""

import argparse
import re
import sys
from pathlib import Path

import nbformat
from nbformat import v4

import house
import notebooks

ROOT = Path(__file__).resolve().parents[1]
FOLDED = {"outputs_hidden": True, "source_hidden": True}
SET_UP = {"code_prompt_show": "Set-up", "code_prompt_hide": "Set-up"}
SOLUTION = {"code_prompt_show": "Show solution", "code_prompt_hide": "Hide solution"}

OPENING = """# TITLE {name}

**WHICH question does this chapter answer?**

**After this chapter you can** SAY AND DO WHAT.

**You need** WHICH CHAPTERS. It runs in less than twenty seconds."""
IMPORTS = """import d2l_ext  # first: it prepares MXNet's engine

%matplotlib inline
import matplotlib.pyplot as plt
from mxnet import np, npx

from bookkit import style
from bookkit.provenance import provenance
from exercisekit import check, solution

npx.set_np()
style.use()"""
IDEA = """## THE IDEA

AT MOST FIFTEEN LINES, with data to check by eye.
Predict the sum."""
COST = """## WHAT IT COSTS

TIME, bytes sent, memory: measured, beside the formula.
Predict how much twice as many take."""
#: The first picture of a chapter, this or a drawing, is its card on the first page.
PLOT = """sizes = [1, 2, 4]
_, ax = plt.subplots(figsize=(4, 2.5))
ax.plot(sizes, [4 * size for size in sizes], "o-")
_ = ax.set(xlabel="numbers", ylabel="bytes")"""
SUMMARY = """## Summary

- FIRST.
- SECOND.
- THIRD.

## Exercises"""
EXERCISE = """### Exercise {number}

*{level}.*
WHAT is one and one?

<details>
<summary>Hint</summary>

COUNT.

</details>"""
EXERCISES = '''"""Exercises of the chapter *TITLE {name}*."""

from ..question import Question, Task, compared


def total(values):
    return sum(values)


def _forgets_the_last(values):
    return sum(values[:-1])


QUESTIONS = {{
    1: Question("the number", 2, [(1, "WHAT a usual mistake suggests.")]),
    2: Task("a function `total(values)`", total,
            [(_forgets_the_last, "WHAT it forgets.")],
            judge=compared(total, [([],), ([1, 2],)])),
}}
'''
LESSON = '''"""WHAT this file teaches."""


def {name}(values):
    """The sum of `values`, a list of numbers.

    Developed in the chapter *TITLE {name}*.
    """
    return sum(values)
'''
LESSON_USED = """from d2l_ext.{part} import {name}

print(sum([1, 2, 3]), {name}.{name}([1, 2, 3]))
assert {name}.{name}([1, 2, 3]) == 6  # the library's is the reader's"""
TEST = '''"""WHAT must hold of the lesson."""

import pytest

from d2l_ext.{part}.{name} import {name}


@pytest.mark.parametrize("values, total", [([], 0), ([1, 2], 3)])
def test_it_is_the_sum(values, total):
    assert {name}(values) == total
'''


def notebook(part, name, lesson):
    """Return the chapter, without outputs."""
    cells = [
        v4.new_markdown_cell(OPENING.format(name=name)),
        _code(IMPORTS, tags=["hide-input"], mystnb=SET_UP),
        v4.new_markdown_cell(IDEA),
        _code("total = np.arange(4).sum()\nprint(total)\nassert total == 6"),
        v4.new_markdown_cell(COST),
        _code(LESSON_USED.format(part=part, name=name) if lesson else
              "print(8 * 4, 'bytes')\nassert np.zeros(8).nbytes == 8 * 4"),
        _code(PLOT, tags=["hide-input"], mystnb={
            "figure": {"caption": "WHAT is plotted, and WHAT to see.",
                       "name": f"{name}-cost".replace("_", "-")},
            "image": {"alt": "WHAT the picture shows, for those who hear the page."}}),
        v4.new_markdown_cell(SUMMARY),
    ]
    for number, level in enumerate(("Warm-up", "Standard", "Standard", "Deeper"), 1):
        cells.append(v4.new_markdown_cell(EXERCISE.format(number=number, level=level)))
        if number < 3:
            asked = f'check("{name}", {number}, None)  # replace None with your answer'
            cells.append(_code(asked))
        solved = "assert 1 + 1 == 2\nprint(1 + 1)"
        if number == 2:
            solved = f'total = solution("{name}", 2)'
        cells.append(_code(solved, tags=["hide-cell"], jupyter=FOLDED, mystnb=SOLUTION))
    origin = ["remove-input", "nbval-ignore-output"]
    cells.append(_code("provenance()", tags=origin))
    return notebooks.normalise(v4.new_notebook(cells=cells))


def _code(source, **metadata):
    return v4.new_code_cell(source, metadata=metadata)


def parts(root=ROOT):
    """Return the parts that have a folder of chapters."""
    return [part for part in house.PARTS if (root / "chapters" / part).is_dir()]


def write(root, part, name, lesson):
    """Write all files below `root`; return the paths written or changed.

    Raises `ValueError` for a part that is not one of `parts`, or a name that is taken.
    """
    if part not in parts(root):
        raise ValueError(f"{part} is not a part that has chapters: choose "
                         f"{', '.join(parts(root))}")
    taken = [path for path in root.glob(f"chapters/*/{name}.ipynb")]
    if not name.isidentifier() or taken:
        raise ValueError(f"{name} is taken, or is not a name of letters, digits and _")
    chapter = root / f"chapters/{part}/{name}.ipynb"
    texts = {root / f"exercisekit/{part}/{name}.py": EXERCISES}
    if lesson:
        texts[root / f"d2l_ext/{part}/{name}.py"] = LESSON
        texts[root / f"tests/{part}/test_{name}.py"] = TEST
    for path in texts:
        if path.exists():
            raise ValueError(f"{path.relative_to(root)} exists already")
    for path, text in texts.items():
        path.write_text(text.format(part=part, name=name), "utf-8")
    nbformat.write(notebook(part, name, lesson), chapter)
    contents = root / "_toc.yml"
    _add_line(contents, f"chapters/{part}/", f"      - file: chapters/{part}/{name}")
    changed = [chapter, *texts, contents]
    if lesson:
        table = root / f"d2l_ext/{part}/__init__.py"
        _add_line(table, "| `", f"| `{name}` | WHAT it holds | TITLE {name} |")
        changed.append(table)
    return [path.relative_to(root).as_posix() for path in changed]


def _add_line(path, mark, line):
    """Insert `line` below the last line of `path` that contains `mark`."""
    lines = path.read_text("utf-8").splitlines(keepends=True)
    last = max(i for i, each in enumerate(lines) if re.search(re.escape(mark), each))
    lines.insert(last + 1, f"{line}\n")
    path.write_text("".join(lines), "utf-8")


def main(argv=None):
    """Write the skeleton, and return the exit status."""
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("part", choices=parts())
    flags.add_argument("name")
    flags.add_argument("--lesson", action="store_true", help="with a file of d2l_ext")
    args = flags.parse_args(argv)
    try:
        written = write(ROOT, args.part, args.name, args.lesson)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(*written, sep="\n")
    chapter = f"CHAPTERS=chapters/{args.part}/{args.name}.ipynb"
    print(f"\nReplace the words in capitals; then: make rerun {chapter}")
    if args.lesson:
        print("and make map, which adds the lesson to the README.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
