"""nbval catches what it is there to catch, on a notebook of three cells."""

import re
import subprocess
import sys

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output
from notebook_cells import ROOT

SANITIZE = ROOT / "tests" / "nbval_sanitize.cfg"


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


def run_nbval(folder, doctors):
    """The exit status and the output of nbval over one notebook per doctor."""
    for doctor in doctors:
        nb = notebook()
        doctor(nb.cells[1])
        nbformat.write(nb, folder / f"{doctor.__name__}.ipynb")
    options = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=30"]
    options += [f"--nbval-sanitize-with={SANITIZE}", "--rootdir", str(folder)]
    # The settings and plugins of this project's own tests play no part here.
    options += ["-c", "/dev/null", "-p", "no:xdist", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(folder)],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return result.returncode, result.stdout


def test_the_untouched_notebook_passes(tmp_path):
    status, output = run_nbval(tmp_path, [untouched])
    assert status == 0, output
    assert "3 passed" in output


def test_each_doctored_cell_fails_and_no_other(tmp_path):
    status, output = run_nbval(tmp_path, DOCTORS)
    assert status == 1, output
    failed = set(re.findall(r"FAILED (\w+\.ipynb::Cell \d+)", output))
    assert failed == {f"{doctor.__name__}.ipynb::Cell 1" for doctor in DOCTORS}, output
    assert "3 failed, 6 passed" in output
