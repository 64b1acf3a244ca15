"""What fails beside other tests runs once more, alone; what fails then is an error."""

import sys
from subprocess import run

import pytest
from played_machine import TOOLS

TOOL = TOOLS / "run_tests.py"

BESIDE = ["-pxdist.plugin", "--side-by-side=-n 2 --dist loadfile"]

#: Fails when it runs for the first time.
ONCE = """
from pathlib import Path

def test_rare():
    seen = Path(__file__).with_suffix(".seen")
    first = not seen.exists()
    seen.touch()
    assert not first
"""
ALWAYS = "def test_wrong():\n    assert 1 == 2\n"
RIGHT = "def test_right():\n    print('right ran')\n"
#: Passes only as a whole: the second test needs what the first one left.
WHOLE = f"left = []\ndef test_a():\n    left.append(1)\n{ONCE}    assert left\n"


@pytest.fixture
def tests(tmp_path, monkeypatch):
    """A function: runs files of tests by these names; returns what came of it."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take a second each
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)

    def ran(*options, **files):
        for name, text in files.items():
            (tmp_path / f"test_{name}.py").write_text(text)
        command = [sys.executable, TOOL, *options, "."]
        return run(command, cwd=tmp_path, check=False, capture_output=True, text=True)

    return ran


def test_tests_that_pass_run_once(tests):
    done = tests(right=RIGHT)
    assert done.returncode == 0
    assert "1 passed" in done.stdout and "Once more" not in done.stdout


@pytest.mark.parametrize("options", [[], BESIDE])
def test_a_rare_failure_passes_alone_and_is_named_at_the_end(tests, options):
    done = tests(*options, rare=ONCE, right=RIGHT)
    assert done.returncode == 0
    assert "1 failed, 1 passed" in done.stdout and "assert not True" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(
        "FAILED ONCE, passed alone: test_rare.py."
    )


def test_on_github_it_is_a_warning_of_the_run(tests, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    last = tests(rare=ONCE).stdout.splitlines()[-1]
    assert last.startswith("::warning::FAILED ONCE, passed alone: test_rare.py.")


def test_what_is_wrong_fails_twice(tests):
    done = tests(wrong=ALWAYS, rare=ONCE, right=RIGHT)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout.split("Once more, alone: ")[1]
    assert "FAILED ONCE" not in done.stdout


def test_the_second_run_is_of_whole_files(tests):
    # So a chapter's cells find what the cells before them left.
    done = tests(whole=WHOLE)
    assert done.returncode == 0 and "2 passed" in done.stdout


def test_many_failing_files_are_no_chance(tests):
    done = tests(**dict.fromkeys("abcd", ONCE))
    assert done.returncode == 1 and "Once more" not in done.stdout


def test_a_file_that_cannot_be_read_is_no_chance(tests):
    done = tests(broken="def", rare=ONCE)
    assert done.returncode == 2 and "Once more" not in done.stdout


def test_options_are_for_both_runs_and_neighbours_for_the_first(tests):
    done = tests("--side-by-side=-v", "--durations=1", rare=ONCE)
    first, second = done.stdout.split("Once more, alone: test_rare.py")
    assert "slowest 1 durations" in first and "slowest 1 durations" in second
    assert "test_rare.py::test_rare FAILED" in first
    assert "test_rare.py::test_rare PASSED" not in second
