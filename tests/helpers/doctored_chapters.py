"""A chapter that keeps every rule, and the ways to break it.

`good()` makes the chapter. `BROKEN` maps each rule to a function that breaks the
chapter so that this rule finds it, and no other.
"""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_cells import code_cells
from rules_form import SET_UP
from rules_learning import FOLDED

LAST_LINE = "style.use()"
RUN = (
    "Run on 2 November 2026 at commit abc1234, with MXNet 1.9.1 and Python 3.11.7, on "
    "an abacus with 2 cores and no GPU; OMP_NUM_THREADS=1."
)
OPENING = """# Title

**After this chapter you can** count to three.

**You need** [another](one.ipynb). The notebook runs in less than half a minute.

```python
## not a heading
```"""
SUMMARY = """## Summary

- One.
- Two.
- Three.

## Exercises"""
HINT = """

<details>
<summary>Hint</summary>

Count them.

</details>"""
EXERCISE = "### Exercise {number}\n\n*{level}.*\nHow many?" + HINT
#: Asserts what another time would be otherwise, by a function of its own.
TOGETHER = "def so(trace):\n    return trace.overlap() > 0\n\n\nassert so(trace)"
ORIGIN = ["remove-input", "nbval-ignore-output"]
#: Where in the chapter the summary and the exercises are, as numbers of cells.
IN_SUMMARY, FIRST, CHECK, SOLUTION = 8, 9, 10, 11


def code(source, *outputs, tags=(), **metadata):
    if tags:
        metadata["tags"] = list(tags)
    return new_code_cell(source, outputs=list(outputs), metadata=metadata)


def text(printed):
    return new_output("stream", name="stdout", text=printed)


def origin(line):
    return new_output("execute_result", {"text/plain": line}, execution_count=1)


def image(kind="image/png"):
    return new_output("display_data", {kind: "L3RtcC8="})


def good():
    figure = {
        "image": {"alt": "A line that rises."},
        "figure": {"caption": "A line.", "name": "fig-line"},
    }
    cells = [
        new_markdown_cell(OPENING),
        code(f"import d2l_ext\n{LAST_LINE}", tags=["hide-input"], mystnb=SET_UP),
        new_markdown_cell("## First\n\nAn **engine** makes it.\nPredict its shape."),
        code("X = np.ones(3)\nX.shape", text("(3,)"), tags=["claim-S4"]),
        code("plot(X)", image(), mystnb=figure),
        code("timer.stop()", text("0.2 sec"), tags=["nbval-ignore-output"]),
        new_markdown_cell("Predict the sum. **It is exact.**"),
        code("X.sum()", text("3")),
        new_markdown_cell(SUMMARY),
    ]
    for i, level in enumerate(("Warm-up", "Standard", "Deeper", "Deeper"), start=1):
        cells.append(new_markdown_cell(EXERCISE.format(number=i, level=level)))
        if i == 1:
            cells.append(code(f'check("example", {i}, None)', text("no answer yet")))
        cells.append(code("assert X.sum() == 3", tags=["hide-cell"], jupyter=FOLDED,
                          mystnb={"code_prompt_show": "Show solution"}))
    cells.append(code("provenance()", origin(RUN), tags=ORIGIN))
    nb = new_notebook(cells=cells)
    for i, cell in enumerate(code_cells(nb), start=1):
        cell.execution_count = i
    return nb


def output(printed, **more):
    """Breaks cell 3 with something else printed."""
    return lambda nb: nb.cells[3].update(outputs=[text(printed)], **more)


def source(new, i=3):
    return lambda nb: nb.cells[i].update(source=new)


def replace(old, new, i=IN_SUMMARY):
    def doctor(nb):
        assert old in nb.cells[i].source
        nb.cells[i].source = nb.cells[i].source.replace(old, new)

    return doctor


def tag(new, i=3):
    return lambda nb: nb.cells[i].metadata.setdefault("tags", []).append(new)


def stderr(nb):
    nb.cells[3].outputs = [new_output("stream", name="stderr", text="warning")]


def error(nb):
    failed = new_output("error", ename="ValueError", evalue="no", traceback=[])
    nb.cells[3].outputs = [failed]


#: By rule: what breaks the chapter so that this rule finds it.
BROKEN = {
    "is_valid": lambda nb: nb.cells[3].update(colour="red"),
    "was_executed_in_order": lambda nb: nb.cells[3].update(execution_count=None),
    "stores_errors_only_where_expected": error,
    "stores_no_stderr": stderr,
    "is_small": output("x" * 1_600_000),
    "names_no_path_of_a_machine": output("read '/home/ann/data.gz'"),
    "has_known_tags": tag("nbval-skip"),
    "compares_no_times": output("acc 0.97, 0.4 sec/epoch"),
    "imports_the_library_first":
        source(f"from d2l import mxnet as d2l\nimport d2l_ext\n{LAST_LINE}", i=1),
    "leaves_devices_to_the_library": source("d = mx.cpu(device_id=1)"),
    "says_where_its_numbers_come_from":
        lambda nb: nb.cells[-1].update(outputs=[origin(RUN.replace("commit", ""))]),
    "describes_its_images": lambda nb: nb.cells[4].metadata["mystnb"].pop("image"),
    "draws_in_the_books_style": source("ax.legend(frameon=False)"),
    "ends_with_summary_and_exercises": replace("## Exercises", "## Tasks"),
    "has_solved_exercises": source("X.sum()", i=SOLUTION),
    "asserts_nothing_of_one_moment": source(TOGETHER),
    "folds_its_set_up": lambda nb: nb.cells[1].metadata.pop("tags"),
    "shows_source_at_the_end_of_a_cell": source("show(f)\nX.sum()"),
    "names_its_folds": tag("hide-input", i=5),
    "prints_figures_with_what_it_asserts": output("they are equal: True"),
    "opens_with_what_it_gives_and_needs":
        replace("**You need** [another](one.ipynb). ", "", i=0),
    "asks_to_predict":
        lambda nb: nb.cells.insert(3, new_markdown_cell("It is (3,).")),
    "sums_up_in_points": replace("- Three.\n", ""),
    "grades_its_exercises": replace("Warm-up", "Standard", i=FIRST),
    "folds_a_hint_below_each_exercise": replace(HINT, "", i=FIRST),
    "folds_what_it_hides_in_jupyter_too":
        lambda nb: nb.cells[SOLUTION].metadata.pop("jupyter"),
    "lets_the_reader_check_an_answer": source('check("example", 2, None)', i=CHECK),
    "explains_its_bold_terms": replace("An", "**An**", i=2),
}
