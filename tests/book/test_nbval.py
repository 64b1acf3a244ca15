"""nbval does with a chapter's cells what this book counts on, in notebooks of a few."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from job_checks import wait_for
from nbformat.v4 import new_code_cell, new_notebook, new_output
from notebook_cells import ROOT

SANITIZE = ROOT / "tests/book/nbval_sanitize.cfg"
JOB = """
from bookkit import by_hand
import pslaunch as launch
from pslaunch.temporary import Folder
job = launch.run(["true"], 1, 1)
processes = by_hand.Processes()
folder = Folder()
print(job.returncode)
"""
RAISES = "class {0}(ValueError): pass\nraise {0}('cpu(3)')"
#: Notebooks of cells: the code, what is stored of it, and whether it is to pass, fail
#: or be skipped. The device of a stored output may be of another kind.
NOTEBOOKS = {
    "compared": [
        ("x = 3\nprint(x)", "3\n", "P"), ("print('cpu(0)', x)", "gpu(0) 3\n", "P"),
        ("print('cpu(0)', x)", "gpu(0) 5\n", "F"), ("print(x)", "", "F"),
        ("raise ValueError(x)", "", "F"), ("print(x + 2)", "5\n", "P"),
        (JOB, "0\n", "P"),
    ],
    "too_few_cores": [("x = 1", "", "P"), (RAISES.format("TooFewCores"), "", "S"),
                      ("later", "", "S")],
    "another_error": [("x = 1", "", "P"), (RAISES.format("TooFewOthers"), "", "F"),
                      ("later", "", "F")],
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """{notebook: what became of each cell}, and the folder of temporary files."""
    folder, temporary = map(tmp_path_factory.mktemp, ("chapters", "temporary"))
    shutil.copy(ROOT / "chapters/conftest.py", folder)
    for name, cells in NOTEBOOKS.items():
        nb = new_notebook(cells=[
            new_code_cell(code, execution_count=i, outputs=[
                new_output("stream", name="stdout", text=printed)] if printed else [])
            for i, (code, printed, _) in enumerate(cells, start=1)])
        nbformat.write(nb, folder / f"{name}.ipynb")
    # The settings and plugins of this project's own tests play no part here.
    options = ["-c", "/dev/null", "-p", "nbval.plugin", "-p", "no:cacheprovider"]
    options += ["-v", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=120"]
    options += [f"--nbval-sanitize-with={SANITIZE}", "--rootdir", folder, folder]
    said = subprocess.run(
        [sys.executable, "-m", "pytest", *options], cwd=folder, check=False,
        capture_output=True, text=True, timeout=600,
        env={**os.environ, "TMPDIR": str(temporary),
             "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    ).stdout
    became = {name: re.findall(rf"{name}::ipynb::Cell \d+ ([PFS])", said)
              for name in NOTEBOOKS}
    return became, temporary


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_cell_passes_fails_or_is_skipped_as_it_should(ran, name):
    assert ran[0][name] == [to_be for _, _, to_be in NOTEBOOKS[name]]


def test_kernels_that_nbval_kills_leave_nothing_in_the_temporary_folder(ran):
    wait_for(lambda: not list(ran[1].iterdir()))
