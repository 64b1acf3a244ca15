"""How a start is watched to its end, what ps-lite's resending does to that, and when a
job that failed is started again."""

import d2l_ext  # noqa: F401, I001
import re
import time
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from job_checks import nothing_left  # noqa: F401

import pslaunch as launch
from trainkit import resume
from pslaunch import plan, runner, supervise
from pslaunch.job import Failed, Process

TRIED = ("[21:25:56] resender.h:121: W[9]: Timeout to get the ACK message. Resend "
         "(retry={}) ? => {}. Meta: request=1, timestamp={}, {}\n")
GAVE_UP = ("terminate called after throwing an instance of 'dmlc::Error'\n  what():  "
           "resender.h:124: Check failed: it.second.num_retry < max_num_retry_ "
           "(10 vs. 10)\n")
LAST, OF_WORKERS = (f"control={{ cmd=BARRIER, barrier_group={i} }}" for i in (7, 4))
PUSH = "app_id=0, customer_id=0, simple_app=0, push=1, head=0"


def gave_up(*message):
    return TRIED.format(9, *message) + TRIED.format(10, *message) + GAVE_UP


# ---- What a process printed ----


@pytest.mark.parametrize("message, closed", [
    ((1, 5, LAST), True),
    ((1, 1, LAST), False),  # the first barrier, at which the store is opened
    ((1, 5, OF_WORKERS), False),  # the program's own, perhaps
    ((8, 5, PUSH), False),
])
def test_a_worker_that_gave_up_was_done_if_it_wanted_to_leave(message, closed):
    log = gave_up(*message)
    assert supervise.had_closed("worker", log) == closed
    assert all(supervise.had_closed(role, log) for role in ("server", "scheduler"))


def test_only_the_message_that_was_given_up_counts():
    before = TRIED.format(3, 1, 5, LAST)
    assert not supervise.had_closed("worker", before + gave_up(8, 6, PUSH))
    assert not supervise.had_closed("worker", before + "Segmentation fault")


@pytest.mark.parametrize("running, ended, said", [
    ({}, {}, "the search for hosts"),
    ({}, {("scheduler", 0): 0, ("worker", 0): 0}, "the display of their output"),
    ({("worker", 1): SimpleNamespace(halted=5)}, {("scheduler", 0): 0},
     "worker 1 (stopped); the scheduler had ended before"),
])
def test_what_was_late_is_named(running, ended, said):
    start = SimpleNamespace(running=running, ended=ended, describe=lambda node:
                            "{} {}".format(*node))
    with pytest.raises(Failed, match=re.escape(f"still running: {said}") + "$"):
        supervise.Watch._fail_late(SimpleNamespace(start=start), "still running", 124)


# ---- A scheduler that has left ----


class Played:
    """A start whose processes end as in a play.

    `ends`: the code of each that ends at once; `later`: a little later. `log`: what
    each has printed.
    """

    is_ready = is_closed = True
    is_behind = False  # nothing is left to be shown
    describe = supervise.Start.describe

    def __init__(self, ends, log="", later=()):
        nodes = [("scheduler", 0), ("server", 0), ("worker", 0), ("worker", 1)]
        self.running, self.ended = {node: Process() for node in nodes}, {}
        self.crew, self.shown, self.begin = Mock(), Mock(), Mock()
        self.crew.placed, self.shown.job.output.return_value = {}, log
        self.acts, self.said = iter([ends, *[{}] * 5, dict(later)]), []
        self.say = self.said.append

    def poll(self):
        ends = next(self.acts, {})
        for node, code in ends.items():
            self.ended[node] = self.running.pop(node)
            self.ended[node].set(code)
        return list(ends)


def watched(ends, done=(), seconds=5.0, **played):
    """The notes on a job in which these processes end, and these workers are done."""
    begun = Played(ends, **played)
    supervise.Watch(begun, time.monotonic() + seconds, done.__contains__).run()
    return begun.said


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(supervise, "LEAVE", 0.2)
    monkeypatch.setattr(supervise, "DESERTED", 0.2)


SCHEDULER, SERVER, *WORKERS = Played({}).running
LEFT = "{} {} waited for the scheduler, which had ended"


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
    with pytest.raises(Failed) as caught:
        watched(ends, seconds=0.5)
    assert str(caught.value) == (
        "the deadline passed, still running: worker 1; the scheduler had ended before"
    )


def test_services_have_time_to_end_after_the_last_worker():
    services = dict.fromkeys([SCHEDULER, SERVER], 0)
    assert watched(dict.fromkeys(WORKERS, 0), later=services) == []


@pytest.mark.parametrize("killed", [SERVER, WORKERS[1]])
def test_of_those_that_fail_together_one_that_a_signal_ended_is_to_blame(killed):
    """The others fail by that: whoever it is, and in whatever order they are seen."""
    ends = {WORKERS[0]: 1, killed: -9}
    for order in (ends, dict(reversed(ends.items()))):
        with pytest.raises(Failed) as caught:
            watched(order)
        assert caught.value.culprit == killed and caught.value.code == 137


def test_services_that_stay_while_the_scheduler_does_fail_the_job(short):
    late = "0.2 s after the last worker still running: scheduler 0, server 0"
    with pytest.raises(Failed, match=late):
        watched(dict.fromkeys(WORKERS, 0))


def test_an_abort_after_the_result_is_a_note(short):
    ends = {**dict.fromkeys([SCHEDULER, SERVER, WORKERS[0]], 0), WORKERS[1]: -6}
    notes = ["worker 1 aborted after the store was closed"]
    assert watched(ends, done=[1], log=gave_up(1, 4, OF_WORKERS)) == notes
    with pytest.raises(Failed, match="worker 1 was ended by SIGABRT"):
        watched(ends, log=gave_up(1, 4, OF_WORKERS))


# ---- Started again, or not ----

FAILS = "echo start $D2L_EXT_START; exit $((D2L_EXT_START < 3 ? 3 : 0))"


def test_a_job_that_fails_is_started_again_until_it_ends_well(tmp_path):
    job = launch.run(["bash", "-c", FAILS], 1, max_restarts=5, log_dir=tmp_path)
    assert (job.returncode, job.cause, job.restarts, job.attempts) == (0, None, 2, 3)
    cause = "worker 0 ended with code 3 before the job was ready"
    assert job.notes[:2] == [f"{cause}; restart {n} of 5" for n in (1, 2)]
    texts = [(tmp_path / f"worker-0.log{end}").read_text()
             for end in (".start-1", ".start-2", "")]
    assert texts == ["start 1\n", "start 2\n", "start 3\n"]


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


@pytest.mark.parametrize(
    "code, told",
    [(0, False), (1, True), (2, False), (124, False), (125, True), (126, False),
     (127, False), (137, True)],
)
def test_only_a_failure_that_may_pass_is_tried_again(code, told):
    job = SimpleNamespace(returncode=code, restarts=0)
    assert runner.again(job, 1) == told
    assert not runner.again(job, 0)
    assert not runner.again(job, 1, until=0)


def test_the_number_of_the_start_reaches_every_role_and_is_no_users():
    numbered = runner.numbered(plan.make(["x"], 1, 1), 2)
    assert {env[plan.START] for env in numbered.env.values()} == {"2"}
    with pytest.raises(ValueError, match="D2L_EXT_START is set by the launcher"):
        plan.make(["x"], 1, 1, {plan.START: 3})
    assert plan.START not in plan.inherited({plan.START: "3"})


def test_the_trainer_reads_the_variable_that_the_launcher_sets():
    """Which neither imports from the other."""
    assert resume.START == plan.START
