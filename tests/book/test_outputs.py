"""Stored outputs are those of a run, with the code that is there now.

nbval compares what does not change from run to run. The rest, times and pictures, is
bound to its cell and to the library by digests that `make rerun` writes.
"""

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_cells import ROOT, chapters, read

from notebooks import bind, cell_digest, code_cells, code_digest

CODE = '''"""A module."""
import this  # a comment


def f(a):
    """A docstring."""

    return """a text""" + a
'''


def unbound(nb, root):
    """What in `nb` is not what a run made, in words."""
    made = nb.metadata.get("made_by", {"files": {}, "cells": {}})
    wrong = [
        f"cell [{cell.execution_count}] {cell.source[:60]!r}"
        for cell in code_cells(nb)
        if made["cells"].get(cell.id) != cell_digest(cell)
    ]
    files = made["files"].items()
    return wrong + [name for name, was in files if was != code_digest(root / name)]


@pytest.mark.parametrize("page", chapters())
def test_a_chapter_shows_what_its_last_run_made(page):
    wrong = unbound(read(chapters()[page]), ROOT)
    assert not wrong, (
        f"changed since it was run: make rerun CHAPTERS={page}.ipynb\n"
        + "\n".join(wrong)
    )


# Below: what is noticed, on a chapter and a library made here.


@pytest.fixture
def bound(tmp_path):
    (tmp_path / "a.py").write_text(CODE)
    cell = new_code_cell("1 + 1", execution_count=1)
    cell.outputs = [new_output("stream", name="stdout", text="2.5 s")]
    nb = new_notebook(cells=[new_markdown_cell("Text."), cell])
    nb.metadata["made_by"] = {"files": ["a.py"]}
    nb = nbformat.from_dict(bind(nb, tmp_path))
    assert unbound(nb, tmp_path) == []
    return nb


CHANGES = {
    "an output changed by hand": (
        lambda cells: cells[1].outputs[0].update(text="1.5 s"), ["cell [1] '1 + 1'"]),
    "code that was not run again": (
        lambda cells: cells[1].update(source="1 + 2"), ["cell [1] '1 + 2'"]),
    "a cell that was never run": (
        lambda cells: cells.append(new_code_cell("2")), ["cell [None] '2'"]),
    "no text, which may change": (
        lambda cells: cells[0].update(source="Another text."), []),
}  # fmt: skip


@pytest.mark.parametrize("change, found", CHANGES.values(), ids=CHANGES)
def test_of_a_changed_chapter_is_noticed(bound, tmp_path, change, found):
    change(bound.cells)
    assert unbound(bound, tmp_path) == found


@pytest.mark.parametrize("old, new, is_noticed", [
    ("+ a", "- a", True),
    ('"""a text"""', '"""another"""', True),
    ("    return", "    if a:\n        return", True),
    ("a comment", "another", False),
    ("A docstring", "Another", False),
    ("A module", "Another", False),
    ("\n\n\n", "\n\n", False),
])  # fmt: skip
def test_a_change_of_the_librarys_code_is_noticed(
    bound, tmp_path, old, new, is_noticed
):
    assert old in CODE
    (tmp_path / "a.py").write_text(CODE.replace(old, new))
    expected = ["a.py"] if is_noticed else []
    assert unbound(bound, tmp_path) == expected


def test_a_file_that_is_gone_is_noticed(bound, tmp_path):
    Path(tmp_path / "a.py").unlink()
    assert unbound(bound, tmp_path) == ["a.py"]
