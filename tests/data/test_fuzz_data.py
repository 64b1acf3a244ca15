"""A sample of `fuzz_data.py`, and that `fuzz` notices what no spoilt file may do."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1] / "helpers"
PLAYED = """
import pickle, sys, time
from pathlib import Path
import numpy
import fuzz, fuzz_data

def say(*lines):
    print(*lines, sep="\\n", file=sys.stderr)
    return 2

for number, read in enumerate([
    lambda folder: 0,
    lambda folder: say(f"{folder}: no"),
    lambda folder: say("no"),
    lambda folder: say(f"{folder}: no", "no"),
    lambda folder: 1 / 0,
    lambda folder: numpy.ones(3 * 10**8),
    lambda folder: time.sleep(99),
    lambda folder: pickle.loads(pickle.dumps(fuzz.Executed())) or 0,
]):
    folder = Path(sys.argv[1]) / str(number)
    folder.mkdir()
    print(fuzz.trial(read, fuzz_data.outcome, folder, 2 * 10**9, 5)[0])
"""


def run(*command):
    done = subprocess.run([sys.executable, *command], cwd=TESTS, capture_output=True,
                          text=True, check=True, timeout=500)
    return done.stdout.splitlines()


def test_spoilt_files_are_read_or_refused_in_one_line_and_nothing_is_executed():
    """Each mutation of each format, once; 45 of a seed's first 1,000."""
    last = run("fuzz_data.py", "--count", "45", "--seconds", "60")[-1]
    assert last.startswith("0 of 45 ended as none may")


def test_what_no_file_may_do_is_noticed(tmp_path):
    assert run("-c", PLAYED, tmp_path) == [
        "read", "refused in one line", "ENDED with code 2", "ENDED with code 2",
        "TRACEBACK", "TRACEBACK", "NOT DONE after 5 s", "EXECUTED",
    ]
