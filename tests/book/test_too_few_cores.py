"""nbval skips the rest of a chapter for which this machine has too few cores."""

import shutil
import subprocess
import sys

import nbformat
from nbformat.v4 import new_code_cell, new_notebook
from notebook_cells import ROOT


def end_of(folder, error):
    """Return the last line of nbval on a chapter whose second of three cells fails."""
    fails = f"class {error}(ValueError): pass\nraise {error}('cpu(3)')"
    nb = new_notebook(cells=[new_code_cell(code) for code in ("x = 1", fails, "later")])
    nbformat.write(nb, folder / "chapter.ipynb")
    shutil.copy(ROOT / "chapters" / "conftest.py", folder)
    words = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "--nbval-current-env",
             "-c", "/dev/null", folder / "chapter.ipynb"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    return ran.stdout.splitlines()[-1].split(" in ")[0]


def test_cells_from_too_few_cores_on_are_skipped_and_other_errors_fail(tmp_path):
    assert end_of(tmp_path, "TooFewCores") == "1 passed, 2 skipped"
    assert end_of(tmp_path, "TooFewOthers") == "2 failed, 1 passed"
