"""Exercises of the chapter *Sharded checkpoints and elastic training*."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import numpy

from ..question import Question, Task, compared, shown


def sources(size, m, rank, n):
    """Where a worker's own elements and a shard overlap."""
    found, begin, end = [], rank * size // n, (rank + 1) * size // n
    for shard in range(m):
        first, last = shard * size // m, (shard + 1) * size // m
        start, stop = max(begin, first), min(end, last)
        if start < stop:
            found.append((shard, start - first, stop - first))
    return found


class Saver:
    """One thread, and at most one save under way."""

    def __init__(self, write):
        self.write, self.pool, self.last = write, ThreadPoolExecutor(1), []

    def save(self, state):
        self.wait()
        self.last.append(self.pool.submit(self.write, state.copy()))

    def wait(self):
        if self.last:
            self.last.pop().result()


def _judge_saver(kind):
    caller, begun, returned, second = threading.current_thread(), [], Event(), Event()
    written, said = [], []

    def write(state):
        begun.append(state)
        if threading.current_thread() is caller:
            said.append("save writes itself, and not in a thread.")
        elif len(begun) > 1:
            time.sleep(0.05)
        elif not returned.wait(0.5):
            said.append("save came back after the write, not before.")
        elif second.wait(0.05):
            said.append("A second save came back before the first was done.")
        written.append(state.tolist())

    saver, state = kind(write), numpy.zeros(2)
    saver.save(state)
    state += 1
    returned.set()
    saver.save(state)
    second.set()
    saver.wait()
    if len(written) < 2:
        said.append("wait came back before all was written.")
    yield from dict.fromkeys(said)
    if written and written[0] != [0, 0]:
        yield f"save was called with [0, 0], written is {shown(written[0])}."

    def fail(state):
        raise OSError("disk full")

    def tried(call, *given):
        with suppress(OSError):
            call(*given)
            return "nothing"
        return "OSError"

    for calls in ("save", "wait", "wait"), ("save", "save"):
        saver, right = kind(fail), ["nothing", "OSError", "nothing"][: len(calls)]
        found = [tried(saver.wait) if call == "wait" else tried(saver.save, state)
                 for call in calls]
        if found != right:
            raised, not_ = ", ".join(found), ", ".join(right)
            called = ", ".join(calls)
            yield f"write raises OSError: {called} raise {raised}, and not {not_}."


QUESTIONS = {
    1: Question(
        "the seconds",
        35,
        [
            (8.75, "Four workers of a machine share one disk."),
            (210, "That is one disk. All machines write side by side."),
            (17.5, "A disk of 2 GB/s writes 2 GB each second, not 4."),
        ],
    ),
    2: Task(
        "your function sources",
        sources,
        [
            (lambda size, m, rank, n: [(rank, 0, size // n)],
             "A worker's elements may lie in several shards, or in a part of one."),
            ("start - first, stop - first", "start, stop",
             "That counts from the beginning of the array, and not of the shard."),
            ("start - first, stop - first", "start - begin, stop - begin",
             "That counts from the worker's own first element, and not the shard's."),
            ("start < stop", "start <= stop", "An empty piece is none."),
            ("rank * size // n, (rank + 1) * size // n",
             "rank * (size // n), (rank + 1) * (size // n)",
             "Divided first, the rest is nobody's: multiply, and then divide."),
            ("stop - first)", "stop - first - 1)",
             "`stop` is behind the last element, as in a slice."),
            ("in range(m)", "in range(m - 1)", "The last shard is left out."),
            ("min(end, last)", "last",
             "A piece also ends where the worker's own elements end."),
            ("max(begin, first)", "begin",
             "A piece begins no earlier than its shard."),
        ],
        judge=compared(sources, [
            (4, 1, 0, 1), (4, 1, 1, 2), (12, 4, 0, 2), (12, 2, 1, 3), (7, 2, 1, 2),
            (11, 3, 2, 4), (2, 3, 0, 3),
        ]),
    ),
    3: Task(
        "your class Saver",
        Saver,
        [
            ("state.copy()", "state",
             "The thread gets the array itself, which changes before it is written."),
            ("self.last.pop().result()", "self.last.pop().exception()",
             "What the thread raised has to be raised again, in a call."),
            ("self.last.pop()", "self.last[-1]",
             "An error is told once: then it is forgotten."),
            ("        self.wait()\n", "",
             "Only one save is under way: the next one waits for it."),
            ("self.last.pop().result()", "pass", "wait does not wait."),
            ("self.last.append(self.pool.submit(self.write, state.copy()))",
             "self.write(state.copy())",
             "The training stands still while it writes: a thread can do that."),
            ("state.copy()))", "state.copy()))\n        self.last[0].exception()",
             "It starts a thread, and waits for it at once."),
        ],
        judge=_judge_saver,
    ),
}
