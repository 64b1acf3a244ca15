"""A sample of `fuzz_data.py`, and that it notices what none of its files may do."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1] / "helpers"
PLAYED = """
import pickle, sys, time
from pathlib import Path
import numpy
import fuzz_data

def say(*lines):
    print(*lines, sep="\\n", file=sys.stderr)
    return 2

for number, read in enumerate([
    lambda kind, folder: 0,
    lambda kind, folder: say(f"{folder}: no"),
    lambda kind, folder: say("no"),
    lambda kind, folder: say(f"{folder}: no", "no"),
    lambda kind, folder: 1 / 0,
    lambda kind, folder: numpy.ones(3 * 10**8),
    lambda kind, folder: time.sleep(99),
    lambda kind, folder: pickle.loads(pickle.dumps(fuzz_data.Executed())) or 0,
]):
    folder = Path(sys.argv[1]) / str(number)
    folder.mkdir()
    fuzz_data.read = read
    print(fuzz_data.trial("idx", folder, 2 * 10**9, 10)[0])
"""


def run(*command):
    done = subprocess.run([sys.executable, *command], cwd=TESTS, capture_output=True,
                          text=True, check=True, timeout=500)  # fmt: skip
    return done.stdout.splitlines()


def test_spoilt_files_are_read_or_refused_in_one_line_and_nothing_is_executed():
    """Each mutation of each format, once; 45 of a seed's first 1,000."""
    last = run("fuzz_data.py", "--count", "45", "--seconds", "60")[-1]
    assert last.startswith("0 of 45 ended as none may")


def test_what_no_file_may_do_is_noticed(tmp_path):
    assert run("-c", PLAYED, tmp_path) == [
        "read", "refused in one line", "ENDED with code 2", "ENDED with code 2",
        "TRACEBACK", "TRACEBACK", "NOT DONE after 10 s", "EXECUTED",
    ]  # fmt: skip
