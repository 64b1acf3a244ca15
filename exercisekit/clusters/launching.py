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
    """In turn: in turn number i, the hosts that have more than i slots."""
    turns = range(max(slots for _, slots in hosts))
    places = [name for turn in turns for name, slots in hosts if turn < slots]
    if len(roles) > len(places):
        raise ValueError(f"{len(roles)} processes, and {len(places)} slots")
    return list(zip(roles, places))


_ROLES = ["server", "worker", "worker"]
_judge_placed = compared(place, [
    ([("a", 1)], ["worker"]), ([("a", 5), ("b", 5)], _ROLES),
    ([("a", 1), ("b", 3)], _ROLES), ([("a", 0), ("b", 3)], _ROLES),
    ([("a", 2), ("b", 1)], _ROLES), ([("a", 3), ("b", 1), ("c", 3)], _ROLES * 2),
])


def _judge_place(function):
    yield from _judge_placed(function)
    with suppress(ValueError):
        found = function([("a", 1), ("b", 1)], list(_ROLES))
        yield f"Three roles and two slots: {shown(found)}, and no ValueError."


def supervise(commands, deadline):
    """Starts all, looks at all, ends all."""
    end, codes = time.monotonic() + deadline, [None]
    running = [subprocess.Popen(words) for words in commands]
    while None in codes and not any(codes) and time.monotonic() < end:
        time.sleep(0.01)
        codes = [process.poll() for process in running]
    for process in running:
        process.kill()
        process.wait()
    return next(filter(None, codes), 124 if None in codes else 0)


def _children():
    """The processes that this one has started and that are there: number, state."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, *_ = stat.read_text("ascii").rpartition(")")[2].split()
            if int(parent) == os.getpid():
                found[int(stat.parent.name)] = state
    return found


def _judge_supervise(function):
    runs, fails, before = ["sleep", "1"], ["sh", "-c", "exit 7"], _children()
    for when, commands, deadline, right in [
        ("When all end well", [["true"], ["true"]], 60, 0),
        ("After a failure", [fails], 60, 7),
        ("After the deadline", [["true"], runs], 0.03, 124),
        ("After a failure beside one that runs", [runs, fails, ["true"]], 60, 7),
    ]:
        begin = time.monotonic()
        # A Popen that is forgotten waits for its process, if that has ended by then.
        with mock.patch.object(subprocess.Popen, "__del__", lambda process: None):
            found = function(commands, deadline)
        took = time.monotonic() - begin
        for _ in range(20):  # who was killed needs a moment to end
            left = {pid: how for pid, how in _children().items() if pid not in before}
            if {*left.values()} <= {"Z"}:
                break
            time.sleep(0.01)
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        if found != right:
            yield f"{when}, return {right}, not {found!r}."
        if any(state != "Z" for state in left.values()):
            yield f"{when}, a process still runs."
        elif left:
            yield f"{when}, a process has ended, and nobody has waited for it."
        elif took > 0.8:
            yield f"{when}, it takes as long as the one that runs."


QUESTIONS = {
    2: Task(
        "a function that places processes on hosts",
        place,
        [
            (lambda hosts, roles: [(role, hosts[i % len(hosts)][0])
                                   for i, role in enumerate(roles)],
             "A host that is full is passed over."),
            ("for turn in turns for name, slots in hosts if turn < slots",
             "for name, slots in hosts for turn in range(slots)",
             "That fills a host before it goes to the next: take them in turn."),
            ("turn < slots", "turn <= slots",
             "That is one process too many on a host."),
            ("if len(roles) > len(places)", "if False",
             "Who has no place is left out, and nobody is told."),
            ("len(roles) > len(places)", "len(roles) >= len(places)",
             "The last slot is a place, too."),
            ("zip(roles, places)", "zip(places, roles)",
             "The role comes first in a pair, and then the name."),
            ("range(max(", "range(min(",
             "When one host is full, the others may still have room."),
            ("list(zip(roles, places))",
             "[(roles.pop(0), name) for name in places[: len(roles)]]",
             "It empties the caller's list of roles: take a copy."),
            ("in hosts if turn < slots",
             "in sorted(hosts, key=lambda host: -host[1]) if turn < slots",
             "In turn, in their order: the one with the most room is not first."),
        ],
        judge=_judge_place,
    ),
    3: Task(
        "a function that ends what it starts",
        supervise,
        [
            ("124 if None in codes else 0", "0",
             "When the deadline has passed, nobody would know of it."),
            ("next(filter(None, codes), ", "(",
             "The caller wants to know the code of the one that failed."),
            (("    for process in running:\n        process.kill()\n"
              "        process.wait()\n"), "",
             "Who still runs has to be ended, after a failure and after the deadline."),
            ("        process.wait()\n", "",
             "Killed is not gone: until its parent waits for it, it is a zombie."),
            ("    return next(filter(None, codes)",
             ("    codes = [process.wait() for process in running] if any(codes) else "
              "codes\n    return next(filter(None, codes)"),
             "That is the code of one that was killed: keep those from before."),
            ("and not any(codes) and", "and",
             "One has failed: the others need not go on until their end."),
        ],
        judge=_judge_supervise,
    ),
}
