"""A finding is measured again, printed, and stops an author only."""

import json
import os
import subprocess
import sys
import time

import pytest

from bookkit import findings

BURN = "import time\nwhile time.process_time() < 0.6: pass\nprint(flush=True)\ninput()"


@pytest.fixture()
def others(monkeypatch):
    """Two cores, of which others take this share; the clock is `seconds`."""
    here = {"busy": 0.0, "seconds": 0.0}
    monkeypatch.setattr(findings.time, "sleep", lambda pause: passes(here, pause))
    monkeypatch.setattr(findings.time, "monotonic", lambda: here["seconds"])
    monkeypatch.setattr(findings.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(
        findings, "taken_by_others", lambda: 2 * here["busy"] * here["seconds"]
    )
    return here


def passes(here, seconds):
    here["seconds"] += seconds


def measurements(*values):
    return iter(values).__next__


def large(value):
    return value > 5


@pytest.mark.parametrize(
    "values, first, found, said",
    [((9,), None, 9, ""), ((), 8, 8, ""), ((1, 2, 9, 3), None, 9, " (in try 3)")],
    ids=["at once", "there already", "in a later try"],
)
def test_it_is_measured_until_it_holds(others, capsys, values, first, found, said):
    assert findings.tell("large:", large, measurements(*values), first) == found
    assert capsys.readouterr().out == f"large: {found}{said}\n"


@pytest.mark.parametrize("busy, share", [(0.0, "0%"), (0.46, "46%")])
def test_a_reader_is_told_what_was_found_and_goes_on(
    others, capsys, monkeypatch, tmp_path, busy, share
):
    others["busy"] = busy
    monkeypatch.delenv(findings.RECORDING, raising=False)
    monkeypatch.setenv(findings.COLLECTED_IN, str(tmp_path / "found"))
    assert findings.tell("large:", large, measurements(1, 2, 3, 9), tries=3) == 3
    assert capsys.readouterr().out == (
        "Not as on the machine that recorded this page: large: 1; 2; 3 (measured 3 "
        f"times, while other programs took {share} of the processors' time)\n"
    )
    noted = json.loads((tmp_path / "found").read_text())
    assert noted == {"what": "large:", "measured": ["1", "2", "3"], "busy": busy}


@pytest.mark.parametrize("each, tries, said", [
    (100, "5", "1 (measured once,"),
    (25, "5", "1; 2; 3 (measured 3 times,"),
    (1, "1", "1 (measured once,"),
])
def test_it_is_not_measured_again_after_a_minute_or_where_nobody_reads_it(
    others, capsys, monkeypatch, each, tries, said
):
    monkeypatch.delenv(findings.RECORDING, raising=False)
    monkeypatch.setenv(findings.TRIES, tries)
    values = measurements(1, 2, 3, 4, 9)

    def measure():
        passes(others, each)
        return values()

    findings.tell("large:", large, measure)
    assert f"large: {said}" in capsys.readouterr().out


@pytest.mark.parametrize("busy", [0.0, 0.46])
def test_an_author_who_records_outputs_is_stopped(others, monkeypatch, busy):
    others["busy"] = busy
    monkeypatch.setenv(findings.RECORDING, "1")
    with pytest.raises(AssertionError, match="large: 0 s; 1 s; 2 s; 3 s; 4 s "):
        findings.tell("large:", large, measurements(1, 2, 3, 4, 9), first=0,
                      figure=lambda value: f"{value} s")


def test_what_another_program_does_is_counted():
    before = findings.taken_by_others()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", BURN], **pipes) as other:
        other.stdout.readline()
        taken = findings.taken_by_others() - before
        other.communicate("\n")
    assert taken > 0.5


def test_what_this_program_and_its_children_do_is_not(monkeypatch):
    """Whatever others do meanwhile: the count and all that is taken grow apart."""

    def apart():
        with monkeypatch.context() as patched:
            own = findings.taken_by_others()
            patched.setattr(os, "times", lambda: (0.0,) * 5)
            return findings.taken_by_others() - own

    before, end = apart(), time.process_time() + 0.3
    while time.process_time() < end:
        pass
    subprocess.run([sys.executable, "-c", BURN], input="\n", text=True, check=True,
                   stdout=subprocess.PIPE)
    assert apart() - before > 0.3 + 0.5
