"""What fails beside other tests runs again, alone; what fails then is an error."""

import json
import sys
from collections import Counter
from subprocess import run

import pytest
from played_machine import TOOLS

from run_tests import share_done

TOOL = TOOLS / "run_tests.py"

#: Passes or fails from run to run as the letters P and F say.
IN_TURN = """
from pathlib import Path

def test_in_turn():
    counted = Path(__file__).with_suffix(".runs")
    run = int(counted.read_text()) if counted.exists() else 0
    counted.write_text(str(run + 1))
    assert {letters!r}[run] == "P"
"""
ONCE = IN_TURN.format(letters="FPPPPP")
RIGHT = "def test_right():\n    print('right ran')\n"


@pytest.fixture
def tests(tmp_path, monkeypatch):
    """A function: runs files of tests by these names; returns what came of it."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take a second each
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)

    def ran(*options, **files):
        for name, text in files.items():
            (tmp_path / f"test_{name}.py").write_text(text)
            (tmp_path / f"test_{name}.runs").unlink(missing_ok=True)
        command = [sys.executable, TOOL, *options, "."]
        return run(command, cwd=tmp_path, check=False, capture_output=True, text=True)

    return ran


def test_a_rare_failure_passes_five_times_alone_and_is_named_at_the_end(tests):
    beside = "--side-by-side=-n 2 --dist loadfile"
    done = tests("-pxdist.plugin", beside, rare=ONCE, right=RIGHT)
    assert done.returncode == 0
    assert "1 failed, 1 passed" in done.stdout
    assert done.stdout.partition("Alone, 5 times")[2].count("1 passed") == 5
    said = "FAILED ONCE beside others: test_rare.py. Alone: 5 of 5 runs passed."
    assert done.stdout.splitlines()[-1].startswith(said)


@pytest.mark.parametrize("letters, run", [("FF", 1), ("FPPPPF", 5)])
def test_what_fails_alone_as_well_fails(tests, letters, run):
    done = tests(wrong=IN_TURN.format(letters=letters), right=RIGHT)
    assert done.returncode == 1
    assert f"FAILED beside others, and alone in run {run}: test_wr" in done.stdout
    assert "FAILED ONCE" not in done.stdout


@pytest.mark.parametrize("earlier, code", [("test_rare.py", 1), ("test_x.py", 0)])
def test_what_needs_to_be_alone_twice_in_five_runs_fails(
    tests, tmp_path, earlier, code
):
    record = tmp_path / "_build/tests.json"
    record.parent.mkdir()
    before = [[], [earlier], [], []]
    last = {"seconds": 1, "files": {}, "forgiven": before}
    record.write_text(json.dumps({".": last}))
    assert tests(rare=ONCE).returncode == code
    now = json.loads(record.read_text())["."]["forgiven"]
    assert now == [*before[1:], ["test_rare.py"]]


def test_many_failing_files_and_one_that_cannot_be_read_are_no_chance(tests):
    done = tests(**dict.fromkeys("abcd", ONCE))
    assert done.returncode == 1 and "Alone" not in done.stdout
    done = tests(**dict.fromkeys("abc", RIGHT), d="def")
    assert done.returncode == 2 and "Alone" not in done.stdout


def test_the_time_is_said_as_given_and_then_as_it_was(tests, tmp_path):
    assert tests("--about=3", right=RIGHT).stdout.startswith(".: about 3 minutes on")
    record = json.loads((tmp_path / "_build/tests.json").read_text())
    assert record["."]["files"].keys() == {"test_right.py"}
    assert "about 10 seconds, as the last time here" in tests("--about=3").stdout


@pytest.mark.parametrize("before, share", [
    ({}, 0.1),  # one of ten tests
    ({"a": 30, "b": 10}, 0.25),  # 10 of 40 seconds
    ({"b": 10}, 0.5),  # a file that is new counts as the others
])
def test_the_share_that_is_done_is_of_the_time_or_else_of_the_tests(before, share):
    assert share_done({"a": 9, "b": 1}, Counter(b=1), before) == pytest.approx(share)


def test_a_record_that_was_cut_off_is_written_anew(tests, tmp_path):
    record = tmp_path / "_build/tests.json"
    record.parent.mkdir()
    record.write_text('{".": {"seco')
    assert tests(right=RIGHT).returncode == 0
    assert json.loads(record.read_text())["."]["files"].keys() == {"test_right.py"}
