"""What the checks need to know about a notebook: its cells, tags and code."""

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import nbformat

from made_by import tree

ROOT = Path(__file__).resolve().parents[2]
#: The page of puzzles has exercises and nothing else, and calls them puzzles.
PUZZLES = "chapters/scale/puzzles"
#: Calls that assert: numpy's assert_allclose, a chapter's own check_replicas, `tell`, …
ASSERTING = ("assert_", "check_", "tell")


def taking(module, *names):
    """The functions of a module that take just these arguments: its rules."""
    return [
        f for f in vars(module).values()
        if inspect.isfunction(f) and f.__module__ == module.__name__
        and (*inspect.signature(f).parameters,) == names
    ]


def chapters():
    """All chapters: from page name (`chapters/devices/devices`) to notebook file."""
    found = sorted((ROOT / "chapters").glob("**/*.ipynb"))
    found = [path for path in found if ".ipynb_checkpoints" not in path.parts]
    return {path.relative_to(ROOT).with_suffix("").as_posix(): path for path in found}


@cache
def read(path):
    """The notebook as it is stored, not upgraded; it is not to be changed."""
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def code_cells(nb):
    """The code cells that are not empty, in order."""
    return [c for c in nb.cells if c.cell_type == "code" and c.source.strip()]


def markdown(nb):
    """The text of a notebook, an empty line between its cells."""
    return "\n\n".join(c.source for c in nb.cells if c.cell_type == "markdown")


def tags(cell):
    return cell.metadata.get("tags", [])


def label(cell):
    """How a message names a cell: by its count and first line."""
    first = cell.source.strip().split("\n")[0]
    return f"cell [{cell.get('execution_count')}] {first!r}"


def called(root):
    """The last part of the name of everything that is called: `perf_counter`."""
    calls = [node.func for node in ast.walk(root) if isinstance(node, ast.Call)]
    return [getattr(f, "attr", getattr(f, "id", "")) for f in calls]


def asserts(cell):
    """True if running the cell asserts something that could be false.

    An `assert` of a constant, or one in a function that is only defined, does
    not count.
    """
    return any(_asserts(statement) for statement in tree(cell).body)


def _asserts(node):
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
        return False
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name.startswith(ASSERTING):
            return True
    return any(_asserts(child) for child in ast.iter_child_nodes(node))


def headings(nb, level):
    """The headings of one level in the Markdown cells, outside of code blocks."""
    found, fenced = [], False
    for cell in nb.cells:
        for line in cell.source.splitlines() if cell.cell_type == "markdown" else []:
            fenced ^= line.lstrip().startswith(("```", ":::"))
            match = re.match(rf"#{{{level}}} +(.+)", line)
            if match and not fenced:
                found.append(match.group(1).strip())
    return found


def printed(cell):
    """What the cell prints or returns, as plain text."""
    streams = [o.text for o in cell.outputs if o.output_type == "stream"]
    values = [o.get("data", {}).get("text/plain", "") for o in cell.outputs]
    return "\n".join(text for text in streams + values if text)
