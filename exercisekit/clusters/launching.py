"""Exercises of the chapter *Launching jobs*."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from unittest import mock

from ..question import Task, compared, shown


def place(hosts, roles):
    """Return pairs (role, host): round i uses each host with more than i slots."""
    rounds = range(max(slots for _, slots in hosts))
    places = [name for i in rounds for name, slots in hosts if i < slots]
    if len(roles) > len(places):
        raise ValueError(f"{len(roles)} processes do not fit in {len(places)} slots")
    return list(zip(roles, places))


_ROLES = ["server", "worker", "worker"]
_judge_placed = compared(place, [
    ([("a", 1)], ["worker"]), ([("a", 5), ("b", 5)], _ROLES),
    ([("a", 1), ("b", 3)], _ROLES), ([("a", 0), ("b", 3)], _ROLES),
    ([("a", 2), ("b", 1)], _ROLES), ([("a", 3), ("b", 1), ("c", 3)], _ROLES * 2),
    ([("a", 1), ("b", 1), ("c", 4)], _ROLES * 2),
])


def _judge_place(function):
    yield from _judge_placed(function)
    with suppress(ValueError):
        found = function([("a", 1), ("b", 1)], list(_ROLES))
        yield (f"With three roles and two slots, it returns {shown(found)} "
               "instead of raising ValueError.")


def supervise(commands, deadline):
    """Start all commands; return an exit code when all have ended."""
    end, codes = time.monotonic() + deadline, [None]
    running = [subprocess.Popen(words) for words in commands]
    while None in codes and not any(codes) and time.monotonic() < end:
        time.sleep(0.01)
        codes = [process.poll() for process in running]
    for process in running:
        process.kill()
        process.wait()
    return next(filter(None, codes), 124 if None in codes else 0)


def _without(*calls):
    """Return `supervise` that does not make these calls of its processes."""
    left_out = dict.fromkeys(calls, lambda process: None)

    def supervised(commands, deadline):
        with mock.patch.multiple(subprocess.Popen, **left_out):
            return supervise(commands, deadline)

    return supervised


def _zero_at_the_deadline(commands, deadline):
    code = supervise(commands, deadline)
    return 0 if code == 124 else code


def _children():
    """Return the children of this process, including ended ones: {id: state}."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, *_ = stat.read_text("ascii").rpartition(")")[2].split()
            if int(parent) == os.getpid():
                found[int(stat.parent.name)] = state
    return found


def _timed(function, *given):
    begin = time.monotonic()
    return function(*given), time.monotonic() - begin


def _cleared():
    """End the children that are left; return them as `_children` does."""
    for _ in range(20):  # a process that was killed needs a moment to end
        left = _children()
        if {*left.values()} <= {"Z"}:
            break
        time.sleep(0.01)
    for pid in left:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return left


def _judge_supervise(function):
    fails = ["sh", "-c", "exit 7"]
    dies_later = [["true"], ["sh", "-c", "sleep 0.1; kill -9 $$"]]
    long = 0.5 + 10 * _timed(supervise, dies_later, 60)[1]  # the longest of them
    runs = ["sleep", f"{2 * long}"]
    for when, commands, deadline, right in [
        ("When all succeed", [["true"], ["true"]], 60, 0),
        ("After a failure", [fails], 60, 7),
        ("After a signal", dies_later, 60, -9),
        ("After the deadline", [["true"], runs], 0.03, 124),
        ("After a failure while another process runs", [runs, fails, ["true"]], 60, 7),
    ]:
        # A Popen that is forgotten waits for its process, if that has ended by then.
        with mock.patch.object(subprocess.Popen, "__del__", lambda process: None):
            found, took = _timed(function, commands, deadline)
        left = _cleared()
        if found != right:
            yield f"{when}, it returns {found!r} instead of {right}."
        if any(state != "Z" for state in left.values()):
            yield f"{when}, a process is still running."
        elif left:
            yield f"{when}, a process has ended, and its parent has not waited for it."
        elif took > long:
            yield (f"{when}, it returns only after {took:.1f} s: it waits for a "
                   "process that it should end, or too long between two looks.")


QUESTIONS = {
    2: Task(
        "a function `place(hosts, roles)`",
        place,
        [
            (lambda hosts, roles: [(role, hosts[i % len(hosts)][0])
                                   for i, role in enumerate(roles)],
             "A host that is full has to be skipped."),
            (lambda hosts, roles:
             place([(name, 1) for name, slots in hosts for _ in range(slots)], roles),
             "That fills one host before the next: take the hosts in turn."),
            (lambda hosts, roles:
             place(hosts, roles[: sum(slots for _, slots in hosts)]),
             "A process without a slot is left out, but the caller is not told."),
        ],
        judge=_judge_place,
    ),
    3: Task(
        "a function `supervise(commands, deadline)`",
        supervise,
        [
            (_zero_at_the_deadline,
             "The caller has to learn that the deadline has passed."),
            (_without("kill", "wait"),
             "End the other processes after a failure or the deadline."),
            (_without("wait"),
             "A killed process is a zombie until its parent waits for it."),
        ],
        judge=_judge_supervise,
    ),
}
