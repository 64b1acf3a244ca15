"""A flight recorder: the last calls of each rank, in files that outlive a hang.

Each rank has a file of its own, mapped into its memory. Before a call in which other
ranks take part it writes a line there, and a mark after it. Whatever happens to the
process, the others can read the line. A thread writes heartbeats, with the line of the
program that is being executed.
"""

import gc
import mmap
import os
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from math import prod
from pathlib import Path

import numpy

from .. import runtime
from .verdict import Call, Life, what_happened

#: Set to a folder, it makes the trainer's workers record their calls there.
FOLDER = "D2L_EXT_FLIGHT_RECORDER"
#: The calls that a file holds, and the bytes of a line.
LINES, WIDTH = 1000, 256
#: Seconds between two heartbeats; for all ranks to arrive where one has failed.
BEAT, ARRIVAL = 0.25, 1.0
#: The first character of a line: the state of the call.
STATES = {"?": "begun", "+": "ended", "!": "failed"}
#: The calls of a ring, and those of a store in which workers meet, with their names.
RING = ("allreduce", "reduce_scatter", "allgather", "broadcast", "barrier", "zeros")
STORE = {"init": "init", "broadcast": "init", "push": "push", "pushpull": "push",
         "_barrier": "barrier"}
#: Code that is skipped in the search for the place of a call.
OURS = (str(Path(__file__).parents[1]) + os.sep, f"{os.sep}mxnet{os.sep}",
        f"{os.sep}threading.py")


class FlightRecorder:
    """Keeps the last calls of `rank`, one of `num_ranks`, in a file of `folder`.

    `attach` makes one. `timeout`: seconds after which a call that others have not made
    is reported; None: the caller's own time-out decides. `alarms`: the verdicts of
    this rank.
    """

    def __init__(self, rank, num_ranks, folder, timeout=None):
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.rank, self.num_ranks = rank, num_ranks
        self.folder, self.timeout, self.alarms = folder, timeout, []
        self.counts, self.made, self.last = Counter(), 0, time.time()
        self.depth, self.thread = 0, threading.get_ident()
        path = Path(folder, f"rank-{rank}")
        path.unlink(missing_ok=True)  # not cut: another process may have it mapped
        with open(path, "w+b") as file:
            file.truncate(WIDTH * (LINES + 1))
            self.lines = mmap.mmap(file.fileno(), WIDTH * (LINES + 1))
        self.over, self.signing = threading.Event(), threading.Lock()
        self._sign()
        threading.Thread(target=self._watch, daemon=True).start()

    def begin(self, meeting, op, nbytes=0, shape=""):
        """Write the line of a call that begins; return its place for `end`."""
        self.counts[meeting] += 1
        place = WIDTH * (1 + self.made % LINES)
        self.made, self.last = self.made + 1, time.time()
        text = (f"?{self.last:.6f}\t{meeting}\t{self.counts[meeting]}\t{op}\t{nbytes}"
                f"\t{shape[:60]}\t{call_site(sys._getframe(1))[-90:]}")
        self.lines[place : place + WIDTH] = _line(text)
        return place

    def end(self, place, state="+"):
        """Mark the call that was begun at `place` as ended ('+') or failed ('!')."""
        self.lines[place : place + 1] = state.encode()

    def close(self):
        """Record that this rank makes no more calls. Its file remains."""
        with self.signing:
            if not self.over.is_set():
                self.over.set()
                self._sign("its end")

    def verdict(self, patience=ARRIVAL):
        """Return what happened, according to the files of all ranks: a `Verdict`, or
        None.

        Waits at most `patience` seconds until all ranks have made the newest call,
        because some may be about to make another one. A late rank arrives then, too,
        but its ring has failed by then: it counts as missing.
        """
        until, first = time.time() + patience, None
        while True:
            calls, lives = read(self.folder)
            found = what_happened(calls, self.num_ranks, lives)
            first = first or found
            if self._all_are_in(calls) or time.time() > until:
                return found or first
            time.sleep(0.05)

    def let_arrive(self, patience=ARRIVAL):
        """Wait at most `patience` seconds until all ranks have made the newest call.

        If the ring failed at once, the previous call would fail for a rank still in it.
        """
        until = time.time() + patience
        while not self._all_are_in(read(self.folder)[0]) and time.time() < until:
            time.sleep(0.02)

    def _all_are_in(self, calls):
        newest = max(calls, key=lambda call: call.time, default=None)
        made = {call.rank for call in calls if call.name == newest.name}
        return len(made) == self.num_ranks

    def _sign(self, place=None):
        frame = _frame_of(self.thread)
        place = place or (call_site(frame) if frame else "?")
        oldest = 0.0
        if self.made > LINES:
            line = WIDTH * (1 + self.made % LINES)
            oldest = float(self.lines[line + 1 : line + 18])
        text = f"{self.rank}\t{self.num_ranks}\t{time.time():.6f}\t{oldest}\t{place}"
        self.lines[:WIDTH] = _line(text)

    def _beat(self):
        """Write a heartbeat, unless this rank has ended meanwhile."""
        with self.signing:
            if not self.over.is_set():
                self._sign()

    def _watch(self):
        """Write heartbeats; report a call in which this rank waits too long."""
        while not self.over.wait(BEAT):
            self._beat()
            if self.timeout and time.time() - self.last > self.timeout:
                found = self.verdict(patience=0)
                if found and not self.alarms and self._waits_in(found):
                    self.alarms.append(found)
                    print(f"no end after {self.timeout:g} s\n{found}", file=sys.stderr,
                          flush=True)
                    runtime.leave(1)  # a worker; the launcher then ends the others

    def _waits_in(self, found):
        calls, _ = read(self.folder)
        return any((call.rank, call.name) == (self.rank, found.call.name)
                   and call.state != "failed"
                   and time.time() - call.time > self.timeout for call in calls)


_LOOKING = threading.Lock()


def _frame_of(thread):
    """Return what `thread` executes now, by its identifier; None if it has ended.

    Up to Python 3.11.11 a garbage collection within `sys._current_frames` can wait for
    other threads forever, and they for it (issue 106883 of CPython).
    """
    with _LOOKING:  # so that no other recorder enables the collector meanwhile
        collects = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames().get(thread)
        finally:
            if collects:
                gc.enable()


def attach(comm, folder, timeout=30.0):
    """Make `comm`, a ring or a distributed kvstore, record its calls; return it.

        with flight_recorder.attach(ring.join(), "/tmp/flight") as r:
            r.allreduce(x)

    `folder`: used by this job only, the same for all ranks; created if missing. A ring
    has a time-out of its own, `deadline`: its errors then end with the verdict. All
    ranks of a ring must call this, and wait for each other here. A call in memory is
    one in a verdict, and two or more in an error of the ring.

    A store waits forever: after `timeout` seconds in which a push, a barrier or another
    call has not been made by all workers, the verdict is printed to standard error, and
    in a job of `pslaunch` the worker is ended, and with it the job.

    Calls of a `dist_async` store wait for no other worker, except `init` and barriers.
    A store's keys should be fewer than `LINES`, the calls that a rank keeps: else a
    verdict may name the wrong ranks.
    Developed in the chapter *Which rank, which call?*.
    """
    is_ring = comm.type == "ring"
    recorder = FlightRecorder(comm.rank, comm.num_workers, folder,
                              None if is_ring else timeout)
    for name in RING if is_ring else STORE:
        if "async" in comm.type and name in ("push", "pushpull"):
            continue
        if name == "zeros" and not comm.shared:
            continue
        describe = _of_ring if is_ring else _of_store
        method = getattr(comm, name)
        setattr(comm, name, _recorded(recorder, method, name, describe))
    comm.recorder = recorder
    if is_ring:
        leave, comm.let_arrive = comm.close, recorder.let_arrive
        comm.close = lambda: (recorder.close(), leave())[1]
        # Wait until all have a recorder: a rank without one could not report a failure.
        _recorded(recorder, type(comm).barrier.__get__(comm), "attach", _of_attaching)()
        comm.calls = 0  # counted as the records count them
    return comm


def _recorded(recorder, method, name, describe):
    """Return `method` of a ring or store, with a line before and a mark after it."""
    def call(*args, **options):
        if recorder.depth:  # inside of another call
            return method(*args, **options)
        recorder.depth += 1
        places = [recorder.begin(*each) for each in describe(name, args, options)]
        state = "!"
        try:
            result = method(*args, **options)
            state = "+"
            return result
        except RuntimeError as error:
            found = recorder.verdict()
            if found:
                recorder.alarms.append(found)
                error.args = (f"{error}\n{found}",)
            raise
        finally:
            recorder.depth -= 1
            for place in places:
                recorder.end(place, state)

    return call


def _of_attaching(name, args, options):
    return [(name, name)]


def _of_ring(name, args, options):
    x = args[0] if args else options.get("x")
    root = args[1] if len(args) > 1 else options.get("root", 0)
    op = f"broadcast {root}" if name == "broadcast" else name
    if isinstance(x, numpy.ndarray):
        return [("call", op, x.nbytes, f"{x.shape} {x.dtype}")]
    return [("call", op, 0, "" if x is None else str(x))]


def _of_store(name, args, options):
    if name == "_barrier":
        return [(STORE[name], STORE[name])]
    keys = args[0] if args else options["key"]
    values = args[1] if len(args) > 1 else options["value"]
    if not isinstance(keys, (list, tuple)):
        keys, values = [keys], [values]
    return [(f"{STORE[name]} {key}", STORE[name], *_size(value))
            for key, value in zip(keys, values)]


def _size(value):
    if isinstance(value, (list, tuple)):  # an array of each device
        value = value[0]
    shape, dtype = value.shape, numpy.dtype(value.dtype)
    return prod(shape) * dtype.itemsize, f"{shape} {dtype}"


def call_site(frame):
    """Return where a call was made: 'train.py:12 in step', outside of this library."""
    while frame.f_back and any(map(frame.f_code.co_filename.__contains__, OURS)):
        frame = frame.f_back
    file = frame.f_code.co_filename
    name = "cell" if "ipykernel" in file or "<ipython" in file else Path(file).name
    return f"{name}:{frame.f_lineno} in {frame.f_code.co_name}"


def _line(text):
    return text.encode(errors="replace").ljust(WIDTH - 1)[: WIDTH - 1] + b"\n"


def read(folder):
    """Return the records of all ranks in `folder`: a list of `Call`, and each rank's
    `Life`.

    Raises `FileNotFoundError` if there are none.
    """
    calls, lives = [], {}
    for path in sorted(Path(folder).glob("rank-*")):
        head, *lines = path.read_text("utf-8", errors="replace").split("\n")
        rank, _, seen, oldest, place = head.rstrip().split("\t")
        lives[int(rank)] = Life(float(seen), place, float(oldest))
        for line in filter(None, map(str.rstrip, lines)):
            with suppress(ValueError):  # a line that is being written
                state, (begun, meeting, number, op, nbytes, shape, place) = (
                    STATES.get(line[0]), line[1:].split("\t"))
                calls.append(Call(int(rank), int(number), op, int(nbytes), shape, place,
                                  meeting, float(begun), state))
    if not lives:
        raise FileNotFoundError(f"{folder}: no rank has recorded anything there: "
                                "check the folder, and that the job had a recorder")
    return calls, lives


def main(folder):
    """Print what happened according to `folder`'s records; return the exit status."""
    calls, lives = read(folder)
    head = next(Path(folder).glob("rank-*")).read_text("utf-8").split("\t", 2)
    print(what_happened(calls, int(head[1]), lives) or
          "All ranks have made the same calls.")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
