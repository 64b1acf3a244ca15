"""The solution that a page shows is the one in the exercises' file, and whole."""

import ast
import subprocess
import sys

import pytest
from notebook_cells import chapters, code_cells, read, tree

from bookkit import functions
from exercisekit import questions, solution, solutions
from exercisekit.question import Task

TASKS = {key: each for key, each in questions().items() if isinstance(each, Task)}


def test_what_is_shown_is_whole(tmp_path):
    """Ruff finds no name in it that is defined nowhere."""
    for (chapter, number), task in TASKS.items():
        shown = solutions.source(task.right)
        (tmp_path / f"{chapter}_{number}.py").write_text(shown, "utf-8")
    undefined = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F821"]
    ran = subprocess.run([*undefined, tmp_path], check=False, capture_output=True,
                         text=True)
    assert ran.returncode == 0, ran.stdout


def code(listing):
    """What a listing does, without its comments and docstrings."""
    return functions.of_text(listing.split("```python\n")[1].split("```")[0])


def shown_on_pages():
    for page, path in chapters().items():
        for cell in code_cells(read(path)):
            for node in ast.walk(tree(cell)):
                if getattr(getattr(node, "func", None), "id", "") == "solution":
                    name, number = (argument.value for argument in node.args)
                    yield pytest.param(page, cell, name, number, id=f"{name}-{number}")


@pytest.mark.parametrize("page, cell, name, number", shown_on_pages())
def test_a_page_shows_the_solution_of_its_own_exercise(page, cell, name, number):
    assert page.endswith(f"/{name}")
    (shown,) = (out.data["text/markdown"] for out in cell.outputs if "data" in out)
    assert code(shown) == code(solutions.listing(TASKS[name, number].right).data)
    said = "".join(out.text for out in cell.outputs if out.output_type == "stream")
    assert f" {number}: right." in said


def test_a_solution_is_shown_tried_and_returned(capsys):
    broadcast = solution("allreduce", 3)
    assert broadcast is TASKS["allreduce", 3].right
    assert "Exercise 3: right. 8 devices: 3 rounds" in capsys.readouterr().out


def test_an_exercise_without_code_has_no_solution_to_show():
    with pytest.raises(KeyError, match=r"exercise 1: only \[3, 4\] ask for code"):
        solution("allreduce", 1)


def test_a_solution_that_its_judge_refuses_is_not_shown(monkeypatch, capsys):
    wrong, _ = TASKS["allreduce", 3].wrong[0]
    monkeypatch.setitem(TASKS["allreduce", 3].__dict__, "right", wrong)
    with pytest.raises(AssertionError, match="not yet"):
        solution("allreduce", 3)
    assert capsys.readouterr().out == ""
