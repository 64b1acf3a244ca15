"""Rules about the form of a chapter: its set-up, and what its cells print and show.

A rule takes a notebook and the name of its page, and gives messages, none when all is
well.
"""

import ast
import re

from notebook_cells import code_cells, label, printed, tags, tree

SET_UP = {"code_prompt_show": "Set-up", "code_prompt_hide": "Set-up"}
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


def names_its_folds(nb, page):
    """Only the code of a figure may be folded without a name: the book names that."""
    for cell in code_cells(nb):
        book = cell.metadata.get("mystnb", {})
        folded = {"hide-input", "hide-cell"} & {*tags(cell)}
        if folded and "figure" not in book and "code_prompt_show" not in book:
            yield f"{label(cell)} is folded: mystnb code_prompt_show names it"


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
