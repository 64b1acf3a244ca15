"""What hangs on the moment is measured again, asserted, or left open in words."""

import itertools
import os
import subprocess
import sys
import time

import pytest

from bookkit import moment

BURN = "import time\nwhile time.process_time() < 0.6: pass\nprint(flush=True)\ninput()"


@pytest.fixture()
def others(monkeypatch):
    """A machine on which others take this share of the time; nobody waits."""
    share, clock, read = {"busy": 0.0}, itertools.count(), itertools.count()
    monkeypatch.setattr(moment.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(moment.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(moment.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(
        moment, "taken_by_others", lambda: next(read) * 2 * share["busy"]
    )
    return share


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
    assert moment.tell("large:", large, measurements(*values), first) == found
    assert capsys.readouterr().out == f"large: yes, {found}{said}\n"


def test_a_first_measurement_is_one_of_the_tries(others):
    with pytest.raises(AssertionError, match="measured 2 times: 0; 1$"):
        moment.tell("large:", large, measurements(1, 9), first=0, tries=2)


def test_on_a_machine_of_its_own_what_never_holds_is_an_error(others):
    others["busy"] = moment.TOO_BUSY
    with pytest.raises(AssertionError) as raised:
        moment.tell("large:", large, measurements(1, 2, 3, 4, 5, 9),
                    figure=lambda value: f"{value} s")  # fmt: skip
    expected = "large: False, measured 5 times: 1 s; 2 s; 3 s; 4 s; 5 s"
    assert str(raised.value) == expected


def test_beside_other_programs_it_is_left_open_in_words(others, capsys):
    others["busy"] = 0.46
    assert moment.tell("large:", large, measurements(1, 2, 3, 4, 5, 9)) == 5
    assert capsys.readouterr().out == (
        "large: cannot be told now: other programs take 46% of the processors' time. "
        "Run this again without them; measured 5 times: 1; 2; 3; 4; 5\n"
    )


def test_what_another_program_does_is_counted():
    before = moment.taken_by_others()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", BURN], **pipes) as other:
        other.stdout.readline()
        taken = moment.taken_by_others() - before
        other.communicate("\n")
    assert taken > 0.5


def test_what_this_program_and_its_children_do_is_not(monkeypatch):
    """Whatever others do meanwhile: the count and all that is taken grow apart."""

    def apart():
        with monkeypatch.context() as patched:
            own = moment.taken_by_others()
            patched.setattr(os, "times", lambda: (0.0,) * 5)
            return moment.taken_by_others() - own

    before, end = apart(), time.process_time() + 0.3
    while time.process_time() < end:
        pass
    subprocess.run([sys.executable, "-c", BURN], input="\n", text=True, check=True,
                   stdout=subprocess.PIPE)  # fmt: skip
    assert apart() - before > 0.3 + 0.5
