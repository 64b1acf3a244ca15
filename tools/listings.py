"""The library's source in the pages, as the library has it now.

A chapter shows a function by `show(lenet.lenet)` or `solution("lenet", 3)`, and stores
the listing when it runs. A comment, a message or another name makes no chapter stale,
so its page would show the old code: each listing is made again before pages are
rendered. Nothing of a chapter runs for that but its imports of this book's packages.
"""

import ast
from pkgutil import resolve_name

import nbformat

import made_by
from bookkit.functions import imports
from bookkit.show import show, show_from
from exercisekit import questions, solutions
from notebooks import chapters, code_cells
from packages import SOURCES
from sources import RenderError, copy_sources


def _solution(chapter, exercise):
    return solutions.listing(questions(chapter)[chapter, exercise].right)


#: What a cell calls to show a listing, and what makes it here.
MAKES = {"show": show, "show_from": show_from, "solution": _solution}


def copy_to_render(root, work):
    """Make `work` a copy of the book in `root`, with today's listings.

    Raises `RenderError`, which names the cell, for a name of the library that is not
    there.
    """
    copy_sources(root, work)
    for path in chapters(work):
        nb = nbformat.read(work / path, as_version=4)
        if made_anew(nb, path):
            nbformat.write(nb, work / path)


def made_anew(nb, path=""):
    """Put today's listings into `nb`; return how many of them have changed.

    `path`: the chapter's, for the error.
    """
    imported, changed = {}, 0
    for cell in code_cells(nb):
        tree = made_by.tree(cell)
        try:
            imported.update(
                (name, resolve_name(dotted)) for name, dotted in imports(tree).items()
                if dotted.split(".")[0] in SOURCES)
        except (AttributeError, ImportError) as error:
            raise RenderError(f"{path}, cell {cell.id}: an import fails: {error}"
                              ) from error
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)
                 and getattr(node.func, "id", None) in MAKES]
        for call, shown in zip(calls, _listings(cell)):
            try:
                made = eval(ast.unparse(call), {**imported, **MAKES})
            except (AttributeError, KeyError, NameError, ValueError) as error:
                raise RenderError(f"{path}, cell {cell.id}: {ast.unparse(call)} shows "
                                  f"nothing: {error}") from error
            changed += shown["text/markdown"] != made.data
            shown["text/markdown"] = made.data
    return changed


def _listings(cell):
    return [out.data for out in cell.outputs if "text/markdown" in out.get("data", {})]
