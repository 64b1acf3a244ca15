"""A sample of `fuzz_data.py`: spoilt data files, and what the trainer makes of them."""

import subprocess
import sys
from pathlib import Path

HELPERS = Path(__file__).parents[1] / "helpers"


def test_spoilt_files_are_read_or_refused_in_one_line_and_nothing_is_executed():
    """Each mutation of each format, once; 45 of a seed's first 1,000."""
    words = [sys.executable, "fuzz_data.py", "--count", "45", "--seconds", "60"]
    done = subprocess.run(words, cwd=HELPERS, capture_output=True, text=True,
                          check=True, timeout=500)  # fmt: skip
    assert done.stdout.splitlines()[-1].startswith("0 of 45 ended as none may")
