"""Assignments hold no solution, and a graded run says what was right."""

import json
import re

import pytest
from notebook_cells import chapters

import course

#: A chapter of two exercises, as short as one can be.
CHAPTER = {
    "nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {
        "name": "python3", "display_name": "Python 3", "language": "python"}},
    "cells": [
        {"cell_type": kind, "id": f"c{i}", "metadata": {"tags": tags}, "source": source,
         **({"outputs": [], "execution_count": 1} if kind == "code" else {})}
        for i, (kind, tags, source) in enumerate([
            ("markdown", [], "# A chapter"),
            ("code", ["hide-cell"], "shown = 'in the text'"),
            ("markdown", [], "## Exercises\n\n### Exercise 1"),
            ("code", [], "from exercisekit import *\ncheck('sharded', 1, None)"),
            ("code", ["hide-cell"], "assert 2 + 14 / 8 == 3.75"),
        ])
    ],
}


@pytest.mark.parametrize("name", chapters())
def test_an_assignment_has_the_questions_and_no_solution(name):
    whole = json.loads(chapters()[name].read_text("utf-8"))
    begin = course.exercises_begin(whole["cells"])
    solutions = [c for c in whole["cells"][begin:] if course.solves(c)]
    assert len(solutions) >= 3
    made = course.assignment(whole)
    text = json.dumps(made, ensure_ascii=False)
    for cell in solutions:
        assert json.dumps(cell["source"], ensure_ascii=False) not in text
    title = re.compile("### (Exercise|Puzzle) ")
    asked = [c for c in whole["cells"] if title.search("".join(c["source"]))]
    assert len(asked) >= 4
    assert all(cell in made["cells"] for cell in asked)
    assert not any(cell.get("outputs") for cell in made["cells"])
    assert len(course.assignment(whole, "solutions")["cells"]) == len(whole["cells"])


def test_a_graded_run_gives_a_line_for_each_answer(tmp_path):
    made = json.dumps(course.assignment(CHAPTER))
    assert "assert 2" not in made and "in the text" in made
    asks = "check('sharded', 1, None)"
    answers = "\\n".join(asks.replace("None", x) for x in ("3.75", "4", "None"))
    (tmp_path / "a.ipynb").write_text(made.replace(asks, answers), encoding="utf-8")
    assert [
        (row["chapter"], row["exercise"], row["result"])
        for row in course.grade(tmp_path / "a.ipynb")
    ] == [("sharded", 1, x) for x in ("right", "not yet", "no answer yet")]


def graded(tmp_path, cell, **options):
    """The results of two exercises, with the code `cell` between them."""
    asks = ["from exercisekit import *\ncheck('sharded', 1, 3.75)", cell,
            "check('sharded', 1, 4)"]
    cells = [{"cell_type": "code", "id": f"c{i}", "metadata": {}, "source": source,
              "outputs": [], "execution_count": None} for i, source in enumerate(asks)]
    (tmp_path / "a.ipynb").write_text(json.dumps({**CHAPTER, "cells": cells}))
    return [row["result"] for row in course.grade(tmp_path / "a.ipynb", **options)]


def test_an_endless_cell_is_interrupted_and_those_after_it_count(tmp_path):
    loop = "import time\nwhile True:\n    time.sleep(1)"
    assert graded(tmp_path, loop, timeout=10) == ["right", "not yet"]


def test_what_was_graded_before_a_cell_ends_the_kernel_is_kept(tmp_path, capsys):
    assert graded(tmp_path, "import os; os._exit(1)") == ["right"]
    assert "a cell ended the kernel" in capsys.readouterr().err
