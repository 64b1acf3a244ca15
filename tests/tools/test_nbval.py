"""nbval catches what it is there to catch, on a notebook of three cells."""

import os
import re
import subprocess
import sys

import nbformat
from job_checks import wait_for
from nbformat.v4 import new_code_cell, new_notebook, new_output
from notebook_cells import ROOT

SANITIZE = ROOT / "tests/book/nbval_sanitize.cfg"


def stream(text):
    return [new_output("stream", name="stdout", text=text)]


def notebook():
    """A notebook whose stored outputs are right, but for the device's kind."""
    cells = [
        new_code_cell("x = 3\nprint(x)", outputs=stream("3\n")),
        new_code_cell("print('cpu(0)', x + 1)", outputs=stream("gpu(0) 4\n")),
        new_code_cell("print(x + 2)", outputs=stream("5\n")),
    ]
    for i, cell in enumerate(cells):
        cell.execution_count = i + 1
    return new_notebook(cells=cells)


def untouched(cell):
    pass


def change_a_stored_number(cell):
    cell.outputs = stream("gpu(0) 5\n")


def raise_in_the_middle(cell):
    cell.source = "raise ValueError('broken')\n" + cell.source


def drop_an_output(cell):
    cell.outputs = []


DOCTORS = [change_a_stored_number, raise_in_the_middle, drop_an_output]


def run_nbval(folder, **variables):
    """The exit status and the output of nbval over the notebooks in a folder."""
    options = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=120"]
    options += [f"--nbval-sanitize-with={SANITIZE}", "--rootdir", str(folder)]
    # The settings and plugins of this project's own tests play no part here.
    options += ["-c", "/dev/null", "-p", "no:xdist", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(folder)],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **variables},
    )
    return result.returncode, result.stdout


def test_each_doctored_cell_fails_and_no_other(tmp_path):
    for doctor in (untouched, *DOCTORS):
        nb = notebook()
        doctor(nb.cells[1])
        nbformat.write(nb, tmp_path / f"{doctor.__name__}.ipynb")
    status, output = run_nbval(tmp_path)
    assert status == 1, output
    failed = set(re.findall(r"FAILED (\w+\.ipynb::Cell \d+)", output))
    assert failed == {f"{doctor.__name__}.ipynb::Cell 1" for doctor in DOCTORS}, output
    assert "3 failed, 9 passed" in output


JOB = """
from bookkit import by_hand
import pslaunch as launch
from pslaunch.temporary import Folder
job = launch.run(["true"], 1, 1)
processes = by_hand.Processes()
folder = Folder()
print(job.returncode)
"""


def test_a_kernel_that_nbval_kills_leaves_nothing_in_the_temporary_folder(tmp_path):
    cell = new_code_cell(JOB, outputs=stream("0\n"), execution_count=1)
    nbformat.write(new_notebook(cells=[cell]), tmp_path / "job.ipynb")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    status, output = run_nbval(tmp_path, TMPDIR=str(temporary))
    assert status == 0, output
    wait_for(lambda: not list(temporary.iterdir()))
