"""What ps-lite's resending does to the end of a job, and what it does not hide."""

import d2l_ext  # noqa: F401, I001
import signal
import time

import pytest
from job_checks import nothing_left  # noqa: F401

import pslaunch as launch
from pslaunch import failures, late, start, supervise

TRIED = ("[21:25:56] resender.h:121: W[9]: Timeout to get the ACK message. Resend "
         "(retry={}) ? => {}. Meta: request=1, timestamp={}, {}\n")  # fmt: skip
GAVE_UP = ("terminate called after throwing an instance of 'dmlc::Error'\n  what():  "
           "resender.h:124: Check failed: it.second.num_retry < max_num_retry_ "
           "(10 vs. 10)\n")  # fmt: skip
LAST, OF_WORKERS = (f"control={{ cmd=BARRIER, barrier_group={i} }}" for i in (7, 4))
PUSH = "app_id=0, customer_id=0, simple_app=0, push=1, head=0"


def gave_up(*message):
    return TRIED.format(9, *message) + TRIED.format(10, *message) + GAVE_UP


# ---- What a process printed ----


@pytest.mark.parametrize(
    "message, closed",
    [
        ((1, 5, LAST), True),
        ((1, 1, LAST), False),  # the first barrier, at which the store is opened
        ((1, 5, OF_WORKERS), False),  # the program's own, perhaps
        ((8, 5, PUSH), False),
    ],
)
def test_a_worker_that_gave_up_was_done_if_it_wanted_to_leave(message, closed):
    log = gave_up(*message)
    assert late.had_closed("worker", log) == closed
    assert late.had_closed("server", log) and late.had_closed("scheduler", log)


def test_only_the_message_that_was_given_up_counts():
    before = TRIED.format(3, 1, 5, LAST)
    assert not late.had_closed("worker", before + gave_up(8, 6, PUSH))
    assert not late.had_closed("worker", before + "Segmentation fault")


# ---- A worker that aborts ----


def aborts(kv, text):
    import os

    print(text, flush=True)
    os.abort()


def test_a_worker_that_aborts_in_the_middle_is_no_success(monkeypatch):
    """Also when the scheduler has counted nodes twice, and says that all was over."""
    monkeypatch.setattr(start.Start, "is_closed", True)
    job = launch.call_job(aborts, gave_up(8, 6, PUSH), check=False)
    assert job.returncode == 128 + signal.SIGABRT and job.results is None
    assert job.cause.startswith("worker ") and "SIGABRT" in job.cause


def fails_once(kv):
    import os
    import time

    start = int(os.environ["D2L_EXT_START"])
    if start == 1 and os.environ["DMLC_WORKER_ID"] == "1":
        time.sleep(1)  # the other has left its result by now
        raise RuntimeError("on purpose")
    return start


def test_a_result_of_a_start_that_failed_counts_no_more():
    job = launch.call_job(fails_once, kv_type=None, max_restarts=1)
    assert (job.results, job.restarts) == ([2, 2], 1)


# ---- A scheduler that has left ----


class Played:
    """A start whose processes end as in a play.

    `ends`: the code of each that ends at once; `later`: a little later. `log`: what
    each has printed.
    """

    is_ready = is_closed = True

    def __init__(self, ends, log="", later=()):
        nodes = [("scheduler", 0), ("server", 0), ("worker", 0), ("worker", 1)]
        self.running, self.codes = dict.fromkeys(nodes), {}
        self.lines, self.log = [], log
        self.acts = iter([ends, *[{}] * 5, dict(later)])

    def gathered(self):
        return True

    joined = gathered

    def begin(self, *roles):
        pass

    def poll(self):
        ends = next(self.acts, {})
        self.codes.update(ends)
        for node in ends:
            del self.running[node]
        return list(ends)

    def halted(self):
        return {}

    def say(self, line):
        raise AssertionError(line)

    def log_of(self, node):
        return self.log

    def lost(self, node):
        return None

    def describe(self, node):
        return "{} {}".format(*node)


def watched(ends, done=(), seconds=5.0, **played):
    """The notes on a job in which these processes end, and these workers are done."""
    until = time.monotonic() + seconds
    begun = Played(ends, **played)
    return supervise.Watch(begun, until, 1, print, done.__contains__).run()


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(supervise, "LEAVE", 0.2)


SCHEDULER, SERVER, *WORKERS = Played({}).running
LEFT = "{} {} waited for the scheduler, which had left"


def test_a_server_that_nobody_answers_spoils_nothing(short):
    ends = dict.fromkeys([SCHEDULER, *WORKERS], 0)
    assert watched(ends) == [LEFT.format(*SERVER)]
    assert watched(ends, seconds=0.1) == [LEFT.format(*SERVER)]  # the deadline is near


def test_nor_does_a_worker_whose_result_is_there(short):
    ends = dict.fromkeys([SCHEDULER, WORKERS[0]], 0)
    nodes = [LEFT.format(*SERVER), LEFT.format(*WORKERS[1])]
    assert watched(ends, done=[1]) == nodes


def test_a_worker_of_which_nobody_knows_more_has_to_end(short):
    ends = dict.fromkeys([SCHEDULER, WORKERS[0]], 0)
    with pytest.raises(failures.Failed) as caught:
        watched(ends, seconds=0.5)
    assert str(caught.value) == (
        "the deadline passed, still running: worker 1; the scheduler had left before"
    )


def test_services_have_time_to_end_after_the_last_worker():
    services = dict.fromkeys([SCHEDULER, SERVER], 0)
    assert watched(dict.fromkeys(WORKERS, 0), later=services) == []


@pytest.mark.parametrize("killed", [SERVER, WORKERS[1]])
def test_of_those_that_fail_together_one_that_a_signal_ended_is_to_blame(killed):
    """The others fail by that: whoever it is, and in whatever order they are seen."""
    ends = {WORKERS[0]: 1, killed: -9}
    for order in (ends, dict(reversed(ends.items()))):
        with pytest.raises(failures.Failed) as caught:
            watched(order)
        assert caught.value.culprit == killed and caught.value.code == 137


def test_services_that_stay_while_the_scheduler_does_fail_the_job(short):
    with pytest.raises(failures.Failed, match="0.2 s after the last worker still"):
        watched(dict.fromkeys(WORKERS, 0))


def test_an_abort_after_the_result_is_a_note(short):
    ends = {**dict.fromkeys([SCHEDULER, SERVER, WORKERS[0]], 0), WORKERS[1]: -6}
    notes = ["worker 1 aborted after the store was closed"]
    assert watched(ends, done=[1], log=gave_up(1, 4, OF_WORKERS)) == notes
    with pytest.raises(failures.Failed, match="worker 1 was ended by SIGABRT"):
        watched(ends, log=gave_up(1, 4, OF_WORKERS))
