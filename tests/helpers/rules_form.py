"""Rules about the form of a chapter: how it opens, how long its main path is.

A rule takes a notebook and the name of its page, and gives messages, none when all is
well. The main path is what a reader sees without unfolding anything,
up to the exercises.
"""

import ast
import re

from nbformat import from_dict
from notebook_cells import code_cells, label, printed, tags, tree

#: Tags of cells whose code a reader does not see at first.
FOLDED = {"hide-cell", "hide-input", "remove-input"}
MOST_CELLS, MOST_WORDS, MOST_LINES = 15, 1800, 25
SET_UP = {"code_prompt_show": "Set-up", "code_prompt_hide": "Set-up"}
NO_WORDS = [
    re.compile(r"(?ms)^(```|~~~).*?^\1\s*$"),
    re.compile(r"(?s)<details>.*?</details>"),
]
#: A line that ends by saying that something is so, instead of by how much.
BARE = re.compile(r"(?m)^.*\b(?:True|False)$")


def folds_its_set_up(nb, page):
    """The first code cell: imports, and nothing printed."""
    first = code_cells(nb)[0]
    if "hide-input" not in tags(first):
        yield "the first code cell is not tagged hide-input"
    prompts = first.metadata.get("mystnb", {})
    if any(prompts.get(key) != text for key, text in SET_UP.items()):
        yield f"the first code cell does not have mystnb {SET_UP}"
    if first.outputs:
        yield "the first code cell prints something"


def has_a_short_main_path(nb, page):
    path = _main_path(nb)
    cells = sum(c.cell_type == "code" and not FOLDED & {*tags(c)} for c in path)
    text = "\n\n".join(c.source for c in path if c.cell_type == "markdown")
    for pattern in NO_WORDS:
        text = pattern.sub("", text)
    words = len(text.split())
    if cells > MOST_CELLS:
        yield f"{cells} code cells on the main path, more than {MOST_CELLS}"
    if words > MOST_WORDS:
        yield f"{words} words on the main path, more than {MOST_WORDS}"


def _main_path(nb):
    for i, cell in enumerate(nb.cells):
        if cell.cell_type == "markdown":
            before, *found = re.split("## (?:Exercises|Puzzles)", cell.source)
            if found:
                return [*nb.cells[:i], from_dict({**cell, "source": before})]
    return nb.cells


def has_short_cells(nb, page):
    for cell in code_cells(nb):
        lines = len(cell.source.splitlines())
        if lines > MOST_LINES:
            yield f"{label(cell)} has {lines} lines, more than {MOST_LINES}"


def prints_figures_with_what_it_asserts(nb, page):
    return [
        f"{label(cell)} prints {match.group()!r}: say by how much"
        for cell in code_cells(nb)
        for match in BARE.finditer(printed(cell))
    ]


def shows_source_at_the_end_of_a_cell(nb, page):
    """Jupyter displays the last expression alone: `show(f)` before it shows nothing."""
    return [
        f"{label(cell)} calls show before its last line: nothing is shown"
        for cell in code_cells(nb)
        for statement in tree(cell).body[:-1]
        if isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and getattr(statement.value.func, "id", "") in ("show", "show_from")
    ]
