"""Right code that is written otherwise than the reference is accepted.

`variants/PART.py` holds it, in functions (or classes) called EXERCISE_NUMBER_letter:
`allreduce_4_a` is for exercise 4 of *allreduce*. What a chapter's own solution hands to
`check` counts as well, where it is not the reference with other names.
"""

import ast
import importlib.util
import inspect
import sys
import textwrap
from pathlib import Path

import pytest
from notebook_cells import chapters, code_cells, read, tree

from exercisekit import questions
from exercisekit.question import says

FILES = sorted((Path(__file__).parent / "variants").glob("*.py"))
CHAPTERS = {page.split("/")[-1]: path for page, path in chapters().items()}
TASKS = {
    key: question
    for key, question in questions().items() if hasattr(question, "judge")
}


def written():
    """(chapter, exercise): the variants by their names."""
    found = {key: {} for key in TASKS}
    for path in FILES:
        spec = importlib.util.spec_from_file_location(f"variants_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # where the source of a class is looked for
        spec.loader.exec_module(module)
        for name, value in vars(module).items():
            chapter, *rest = name.rsplit("_", 2)
            if getattr(value, "__module__", "") == spec.name and len(rest) == 2:
                found[chapter, int(rest[0])][name] = value
    return found


VARIANTS = written()


class Renamed(ast.NodeTransformer):
    """Gives the names of a definition by their order, so that two can be compared."""

    def __init__(self):
        self.names = {}

    def visit(self, node):
        self.generic_visit(node)
        for field in ("id", "arg", "name"):
            if isinstance(name := getattr(node, field, None), str):
                setattr(node, field, self.names.setdefault(name, len(self.names)))
        return node


def form(node):
    """What a definition does, without its names, docstrings and comments."""
    for inner in ast.walk(node):
        if isinstance(inner, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(
            inner
        ):
            inner.body = inner.body[1:]
    return ast.dump(Renamed().visit(node))


def form_of(function):
    return form(ast.parse(textwrap.dedent(inspect.getsource(function))).body[0])


def solution(chapter, number):
    """The form of what the chapter hands to `check`, which found it right; or None."""
    for cell in code_cells(read(CHAPTERS[chapter])):
        nodes = [*ast.walk(tree(cell))]
        handed = {
            node.args[2].id for node in nodes
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "check"
            and node.args[1].value == number and isinstance(node.args[2], ast.Name)
        }
        for node in nodes:
            if getattr(node, "name", None) in handed:
                said = "".join("".join(out.get("text", "")) for out in cell.outputs)
                assert f" {number}: right." in said
                return form(node)
    return None


@pytest.mark.parametrize(
    "key, name", [(key, name) for key in VARIANTS for name in VARIANTS[key]]
)
def test_right_code_is_accepted_however_it_is_written(key, name):
    assert says(TASKS[key], VARIANTS[key][name]).startswith("right.")


@pytest.mark.parametrize("key", TASKS, ids=lambda key: f"{key[0]}-{key[1]}")
def test_each_exercise_in_code_has_two_that_differ_from_the_reference(key):
    forms = {form_of(variant) for variant in VARIANTS[key].values()} | {solution(*key)}
    differ = len(forms - {form_of(TASKS[key].right), None})
    assert differ >= 2
