"""Exercises of the chapter *Sharded checkpoints and elastic training*."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from unittest import mock

import numpy

from ..question import Question, Task, compared, shown


def sources(size, m, rank, n):
    """Return the pieces in which a worker's own elements and a shard overlap."""
    found, begin, end = [], rank * size // n, (rank + 1) * size // n
    for shard in range(m):
        first, last = shard * size // m, (shard + 1) * size // m
        start, stop = max(begin, first), min(end, last)
        if start < stop:
            found.append((shard, start - first, stop - first))
    return found


def _from_the_beginning(size, m, rank, n):
    return [(k, k * size // m + a, k * size // m + b)
            for k, a, b in sources(size, m, rank, n)]


def _from_its_own(size, m, rank, n):
    own = rank * size // n
    return [(k, k * size // m + a - own, k * size // m + b - own)
            for k, a, b in sources(size, m, rank, n)]


class Saver:
    """A thread that writes, with at most one save at a time."""

    def __init__(self, write):
        self.write, self.pool, self.last = write, ThreadPoolExecutor(1), []

    def save(self, state):
        self.wait()
        self.last.append(self.pool.submit(self.write, state.copy()))

    def wait(self):
        if self.last:
            self.last.pop().result()


class _Whole(Saver):
    def save(self, state):
        self.wait()
        self.last.append(self.pool.submit(self.write, state))


class _Silent(Saver):
    def wait(self):
        if self.last:
            self.last.pop().exception()


class _AtOnce(Saver):
    def save(self, state):
        super().save(state)
        self.last[0].exception()


#: Seconds after which a call counts as waiting; other calls take milliseconds.
LONG = 0.5


def _judge_saver(kind):
    yield from _judge_order(kind)
    yield from _judge_errors(kind)


def _judge_order(kind):
    """Yield the faults in the order of two saves and their writes."""
    caller, begun, returned, second = threading.current_thread(), [], Event(), Event()
    waited, written, said, begin = Event(), [], [], threading.Thread.start

    def start(thread):
        def later(run=thread.run):  # a subclass may have its own
            returned.wait(LONG)
            run()

        thread.run = later
        begin(thread)

    def write(state):
        begun.append(state)
        if threading.current_thread() is caller:
            said.append("save calls write in the caller's thread.")
        elif len(begun) > 1:
            waited.wait(LONG)
        elif not returned.wait(4 * LONG):
            said.append("save returned after the write, not before it.")
        elif second.wait(LONG):
            said.append("A second save returned before the first was written.")
        written.append(state.tolist())

    with mock.patch.object(threading.Thread, "start", start):
        saver, state = kind(write), numpy.zeros(2)
        saver.save(state)
        state += 1
        returned.set()
    saver.save(state)
    second.set()
    saver.wait()
    if len(written) < 2:
        said.append("wait returned before everything was written.")
    waited.set()
    yield from dict.fromkeys(said)
    if written and written[0] != [0, 0]:
        yield f"save was called with [0, 0], but {shown(written[0])} was written."


def _judge_errors(kind):
    """Yield a fault unless the next call raises the error of `write`, once."""

    def write(state):
        written.append(state)
        if len(written) == 1:
            raise error("disk full")

    def tried(call, *given):
        with suppress(error):
            call(*given)
            return "nothing"
        return error.__name__

    for error, writes, *calls in (
        (OSError, 1, "save", "wait", "wait"), (OSError, 1, "save", "save", "wait"),
        (ValueError, 2, "wait", "save", "wait", "save", "wait"),
    ):
        saver, written, right = kind(write), [], ["nothing"] * len(calls)
        right[calls.index("save") + 1] = error.__name__
        given = {"wait": (saver.wait,), "save": (saver.save, numpy.zeros(2))}
        found = [tried(*given[call]) for call in calls]
        when, called = f"when write raises {error.__name__} once", ", ".join(calls)
        if found != right:
            raised, not_ = ", ".join(found), ", ".join(right)
            yield f"{when}, the calls {called} raise {raised} instead of {not_}."
        elif len(written) != writes:
            yield (f"{when}, the number of calls of write after {called} is "
                   f"{len(written)} instead of {writes}.")


QUESTIONS = {
    1: Question(
        "the number of seconds",
        35,
        [
            (8.75, "Four workers of a machine share one disk."),
            (210, "That is for one disk. All machines write at the same time."),
            (17.5, "A disk of 2 GB/s writes 2 GB per second, not 4."),
        ],
    ),
    2: Task(
        "a function `sources(size, m, rank, n)`",
        sources,
        [
            (_from_the_beginning,
             "That counts from the beginning of the array, not of the shard."),
            (_from_its_own,
             "That counts from the worker's own first element, not the shard's."),
            (lambda size, m, rank, n: sources(size // n * n, m, rank, n),
             "If you divide first, no worker has the remainder: multiply first."),
        ],
        judge=compared(sources, [
            (4, 1, 0, 1), (4, 1, 1, 2), (12, 4, 0, 2), (12, 4, 0, 1), (12, 2, 1, 3),
            (7, 2, 1, 2), (11, 3, 2, 4), (2, 3, 0, 3),
        ]),
    ),
    3: Task(
        "a class `Saver(write)`",
        Saver,
        [
            (_Whole,
             "The thread gets the array itself, which changes before it is written."),
            (_Silent, "The next call has to raise the error that the thread met."),
            (_AtOnce, "save starts a thread, and then waits for it."),
        ],
        judge=_judge_saver,
    ),
}
