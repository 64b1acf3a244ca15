"""Code that harms is met with a clear word in seconds, and the next answer counts."""

import itertools
import json
import os
import resource
import signal
import threading
import time
from contextlib import suppress
from resource import RUSAGE_CHILDREN, getrusage

import numpy
import pytest

from exercisekit import answers, solution, trial
from exercisekit.question import Task, says
from exercisekit.ranks import Ranks

KEPT = "as it was"


def judge(function):
    return "" if function(2) == 4 else f"Of 2 it makes {function(2)}, not 4."


TASK = Task("your function double", right=lambda n: 2 * n, judge=judge)


def endless(n):
    while True:
        try:
            n += 1
        except Exception:  # noqa: BLE001, S112
            continue


def stubborn(n):
    while True:
        try:
            while True:
                n += 1
        except BaseException:  # noqa: BLE001
            raise ValueError from None


def raises(n):
    return [][n]


def leaves(n):
    raise SystemExit("away")


def takes_all(n):
    return numpy.ones(1 << 36)


def meddles(n):
    global KEPT
    KEPT = "something else"
    return 2 * n


def loops_in_c(n):
    return sum(itertools.repeat(0))


def ends_python(n):
    os._exit(3)


def crashes(n):
    os.kill(os.getpid(), signal.SIGKILL)


def calls_itself(n):
    return calls_itself(n)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "function, words",
    [
        (endless, "It has not ended after 0.3 seconds of computing: does a loop never"),
        (stubborn, "It raises ValueError"),
        (raises, "It raises IndexError: list index out of range"),
        (leaves, "It raises SystemExit: away"),
        (takes_all, "It needs more than 4 GiB of memory."),
        (meddles, "It changes variables outside the function: KEPT."),
        (loops_in_c, "It has not ended after 1.5 seconds of computing: does a loop"),
        (ends_python, "It ended Python itself, with status 3."),
        (crashes, "It ended Python itself, with SIGKILL."),
        (calls_itself, "It raises RecursionError"),
        (lambda n: n + 3, "Of 2 it makes 5, not 4."),
        (lambda n: numpy.exp(n * 1e4), "Of 2 it makes inf, not 4."),  # and no warning
        (7, "Expected: your function double."),
    ],
)
def test_an_answer_that_harms_is_named_and_the_next_one_counts(
    function, words, monkeypatch
):
    monkeypatch.setattr(trial, "SECONDS", 0.3)
    monkeypatch.setattr(trial, "PATIENCE", 1000)  # however slow the machine is
    monkeypatch.setattr(trial, "IN_C", 5)
    before = sum(getrusage(RUSAGE_CHILDREN)[:2])
    assert says(TASK, function).startswith(f"not yet. {words}")
    assert sum(getrusage(RUSAGE_CHILDREN)[:2]) - before < 30  # seconds of computing
    assert KEPT == "as it was"
    assert says(TASK, lambda n: n + n) == "right."


def interrupts(rank, give, take):
    raise KeyboardInterrupt


def calls_nobody(rank, give, take):
    give(2, b"")


@pytest.mark.parametrize("work, error", [
    (interrupts, KeyboardInterrupt), (calls_nobody, ValueError)])
def test_a_rank_ends_with_whatever_it_raises(work, error):
    ranks, ends = Ranks(2), []
    # Not in this thread, which could wait for ever.
    run = threading.Thread(target=lambda: ends.append(ranks.run(work)), daemon=True)
    run.start()
    run.join(30)
    assert {rank: type(end) for rank, end in ends[0].items()} == {0: error, 1: error}


def test_an_answer_that_sleeps_has_not_ended_after_the_patience(monkeypatch):
    monkeypatch.setattr(trial, "SECONDS", 0.3)
    monkeypatch.setattr(trial, "PATIENCE", 5)
    words = "not yet. It has not ended after 1.5 seconds: does a loop"
    assert says(TASK, lambda n: time.sleep(999)).startswith(words)


def test_every_answer_is_a_line_in_the_grade_book_and_a_solution_is_none(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv(answers.GRADES, str(tmp_path / "grades"))
    for answer in (None, 3.75, 3.0, 100.0):
        answers.check("sharded", 1, answer)
    printed = capsys.readouterr().out
    solution("two_links", 2)
    lines = (tmp_path / "grades").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    assert [row["result"] for row in found] == [
        "no answer yet", "right", "not yet", "not yet",
    ]
    assert {(row["chapter"], row["exercise"]) for row in found} == {("sharded", 1)}
    assert printed.startswith(f"Exercise 1: {found[0]['says']}\n")


def test_a_limit_of_processor_time_stays_and_the_answer_is_tried():
    """As `ulimit -t` sets it."""
    def limited(n):
        assert resource.getrlimit(resource.RLIMIT_CPU)[1] == 10_000
        return TASK.right(n)

    before = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (10_000, 10_000))
    try:
        assert says(TASK, limited).startswith("right.")
    finally:
        with suppress(ValueError):  # only root may raise it again
            resource.setrlimit(resource.RLIMIT_CPU, before)


def test_an_import_of_the_judge_takes_none_of_the_learners_time(monkeypatch, tmp_path):
    """And is never cut off: half a module would fail every later answer."""
    (tmp_path / "slow_to_import.py").write_text(
        "import time\nend = time.process_time() + 0.5\n"
        "while time.process_time() < end: pass\nanswer = 4\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(trial, "SECONDS", 0.3)
    monkeypatch.setattr(trial, "PATIENCE", 1000)  # however slow the machine is

    def imports_first(function):
        from slow_to_import import answer

        return "" if function(2) == answer else "no"

    task = Task("your function", right=None, judge=imports_first)
    assert says(task, lambda n: 2 * n) == "right."
    assert says(task, endless).startswith("not yet. It has not ended after 0.3 seconds")
