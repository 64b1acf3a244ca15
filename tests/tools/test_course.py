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


@pytest.mark.parametrize(
    "answer, result", [("3.75", "right"), ("4", "not yet"), ("None", "no answer yet")]
)
def test_a_graded_run_gives_a_line_for_each_exercise(tmp_path, answer, result):
    made = json.dumps(course.assignment(CHAPTER)).replace("1, None", f"1, {answer}")
    assert "assert 2" not in made and "in the text" in made
    (tmp_path / "a.ipynb").write_text(made, encoding="utf-8")
    (row,) = course.grade(tmp_path / "a.ipynb")
    assert (row["chapter"], row["exercise"], row["result"]) == ("sharded", 1, result)
