"""Stored outputs are those of a run, and what says that they are no longer."""

import copy

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_cells import ROOT, chapters, read

from bookkit.functions import Library
from made_by import bind, code, edited, library


@pytest.mark.parametrize("page", chapters())
def test_a_chapter_shows_what_its_last_run_made(page):
    wrong = edited(read(chapters()[page]))
    assert not wrong, (
        f"not stored by make rerun CHAPTERS={page}.ipynb FRESH=1\n" + "\n".join(wrong)
    )


# Below: what is noticed, on a chapter and a library made here.

LIBRARY = {
    "__init__": '__getattr__ = lazy.names(__name__, traffic="send")',
    "traffic": '''"""A module."""
from . import sizes

LIMIT = 3


def send(x):  # a comment
    """A docstring."""
    total = _rounds(x)
    if total < 0:
        raise ValueError(f"{x} is below 0: give another", 7)
    return total + sizes.shard_sizes(x)


def _rounds(x):
    return LIMIT * x


def other(x):
    return x - 1


class Replica:
    def __init__(self):
        self._weights = 1

    def update(self):
        return self._step()

    def _step(self):
        return self._weights

    def unused(self):
        return 5
''',
    "sizes": "def shard_sizes(n):\n    return [n // 2, n - n // 2]\n",
}
CELL = "from d2l_ext import traffic\ntraffic.send(2)\ntraffic.Replica().update()"


def digests(tmp_path, cell=CELL, old="", new=""):
    """Those of a chapter of one cell and of the library, with `new` for `old`."""
    (tmp_path / "d2l_ext").mkdir(exist_ok=True)
    for name, text in LIBRARY.items():
        (tmp_path / f"d2l_ext/{name}.py").write_text(text.replace(old, new))
    assert not old or any(old in text for text in LIBRARY.values())
    nb = new_notebook(cells=[new_code_cell(cell.replace(old, new))])
    return code(nb, Library(tmp_path, ["d2l_ext"]))


@pytest.mark.parametrize("old, new", [
    ("_rounds", "_count"), ("shard_sizes", "sizes_of_shards"), ("_step", "_go"),
    ("_weights", "_params"), ("total", "both"), ("a comment", "another"),
    ("A docstring", "Another"), ("A module", "Another"), ("x - 1", "x - 2"),
    ("return 5", "return 6"), ("\n\n\n", "\n\n"), ("send", "hand"),
    ("{x} is below", "x must be from"),
])
def test_a_name_a_comment_an_error_text_or_what_is_not_called_makes_none_stale(
    tmp_path, old, new
):
    assert digests(tmp_path) == digests(tmp_path, old=old, new=new)


@pytest.mark.parametrize("old, new, module", [
    ("LIMIT * x", "LIMIT + x", "d2l_ext.traffic"),
    ("LIMIT = 3", "LIMIT = 4", "d2l_ext.traffic"),
    ("total = _rounds(x)", "total = other(x)", "d2l_ext.traffic"),
    ("n // 2, n", "n // 3, n", "d2l_ext.sizes"),
    ("self._weights = 1", "self._weights = 2", "d2l_ext.traffic"),
    ("return self._step()", "return self.unused()", "d2l_ext.traffic"),
    ("LIMIT = 3", "LIMIT = 3\nprint(LIMIT)", "d2l_ext.traffic"),
    ("ValueError", "TypeError", "d2l_ext.traffic"), ("7)", "8)", "d2l_ext.traffic"),
])
def test_what_a_chapter_calls_makes_it_stale(tmp_path, old, new, module):
    before, after = digests(tmp_path), digests(tmp_path, old=old, new=new)
    assert module in {name for name in after if before.get(name) != after[name]}


def test_a_call_of_another_function_that_is_called_anyway_is_a_change(tmp_path):
    cell = f"{CELL}\ntraffic.other(1)\ntraffic._rounds(1)"
    changed = {"old": "total = _rounds(x)", "new": "total = other(x)"}
    assert digests(tmp_path, cell) != digests(tmp_path, cell, **changed)


@pytest.mark.parametrize("cell, is_stale", [
    (f"# A comment.\n{CELL}", False),
    (CELL.replace("traffic\n", "traffic as t\n").replace("traffic.", "t."), False),
    (CELL.replace("send(2)", "send(3)"), True),
    (CELL.replace("send", "other"), True),
])
def test_a_cell_is_its_code(tmp_path, cell, is_stale):
    assert (digests(tmp_path) != digests(tmp_path, cell)) == is_stale


def test_a_module_that_is_run_as_a_command_is_called(tmp_path):
    named = digests(tmp_path, "run('python -m d2l_ext.sizes')")
    assert "d2l_ext.sizes" in named
    assert named != digests(tmp_path, "run('python -m d2l_ext.sizes')", "n // 2", "n")


def test_a_name_that_a_package_gives_away_is_followed_to_its_file(tmp_path):
    assert "d2l_ext.sizes" in digests(tmp_path, "import d2l_ext\nd2l_ext.send(2)")


LISTING = """<details>
<summary>Library source: <code>f</code> in <code>a.py</code></summary>

```python
def f(x):
    return _g(x)  # a comment
```

</details>"""


@pytest.fixture
def run(tmp_path):
    """A chapter as a run made it: a time, a picture, a listing of the library."""
    cells = [new_markdown_cell("Text."), *(
        new_code_cell(source, execution_count=i + 1, outputs=[output])
        for i, (source, output) in enumerate([
            ("time()", new_output("stream", name="stdout", text="2.5 s")),
            ("plot()", new_output("display_data", {"image/png": "iVBORw0KGgo="})),
            ("show(f)", new_output("display_data", {"text/markdown": LISTING}))])
    )]
    nb = bind(new_notebook(cells=cells), Library(tmp_path, ["d2l_ext"]), seconds=2.04)
    assert edited(nb) == [] and nb.metadata["made_by"]["seconds"] == 2.0
    return copy.deepcopy(nb)


def data(cell, kind, old, new):
    cell.outputs[0].data[kind] = cell.outputs[0].data[kind].replace(old, new)


CHANGES = {
    "a time": (lambda cells: cells[1].outputs[0].update(text="1.5 s"), [1]),
    "a picture": (lambda cells: data(cells[2], "image/png", "G", "H"), [2]),
    "the code in a listing": (
        lambda cells: data(cells[3], "text/markdown", "_g(x)", "_g(f)"), [3]),
    "no name in it, if it is the same everywhere": (
        lambda cells: data(cells[3], "text/markdown", "_g", "_helper"), []),
    "no comment in it": (lambda cells: data(cells[3], "text/markdown", "a c", "C"), []),
    "an output that is gone": (lambda cells: cells[1].update(outputs=[]), [1]),
    "a cell that was never run": (
        lambda cells: cells.append(new_code_cell("2", execution_count=9)), [9]),
    "no text, which may change": (lambda cells: cells[0].update(source="Other."), []),
}


@pytest.mark.parametrize("change, found", CHANGES.values(), ids=CHANGES)
def test_outputs_changed_by_hand_are_noticed(run, change, found):
    change(run.cells)
    assert [int(words.split("]")[0][6:]) for words in edited(run)] == found


def test_chapters_are_bound_to_functions_of_this_library():
    """The way from a name in a cell to what that calls leads through real files."""
    made = code(read(chapters()["chapters/data_parallel/allreduce"]), library(ROOT))
    assert {"d2l_ext.data_parallel.traffic", "d2l_ext.data_parallel.minibatch",
            "bookkit.figures.frame"} <= set(made)
    assert not any(name.startswith("exercisekit") for name in made)
    assert "bookkit.provenance" not in made  # what it says is the machine's
