"""A page shows the library's source of today, whatever its chapter stored."""

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from bookkit.show import show
from d2l_ext.data_parallel import lenet
from listings import made_anew
from sources import RenderError

IMPORTS = "from bookkit.show import show\nfrom d2l_ext.data_parallel import lenet"


def chapter(code, stored):
    output = new_output("display_data", {"text/markdown": stored})
    return new_notebook(cells=[new_code_cell(IMPORTS),
                               new_code_cell(code, outputs=[output])])


def listed(nb):
    return nb.cells[-1].outputs[0].data["text/markdown"]


def test_an_old_listing_is_made_anew_and_one_of_today_is_left():
    nb = chapter("show(lenet.lenet)", "what lenet was last year")
    assert made_anew(nb) == 1
    assert listed(nb) == show(lenet.lenet).data
    assert made_anew(nb) == 0


def test_a_solution_is_listed_without_its_judge():
    nb = chapter('broadcast = solution("allreduce", 3)', "")
    assert made_anew(nb) == 1
    assert "def broadcast" in listed(nb)


def test_no_code_runs_but_the_imports_of_these_packages():
    nb = chapter("1 / 0\nimport no_such_module\nshow(lenet.lenet)", "")
    assert made_anew(nb) == 1


@pytest.mark.parametrize("code, said", [
    ("show(lenet.alexnet)", r"show\(lenet.alexnet\) shows nothing: .*alexnet"),
    ("from d2l_ext.data_parallel.lenet import alexnet", "an import fails: .*alexnet"),
    ("from d2l_ext.data_parallel.alexnet import lenet", "an import fails: .*alexnet"),
])
def test_a_function_that_is_gone_is_named_with_its_cell(code, said):
    nb = chapter(code, "")
    with pytest.raises(RenderError, match=f"x.ipynb, cell {nb.cells[-1].id}: {said}"):
        made_anew(nb, "x.ipynb")
