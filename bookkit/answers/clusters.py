"""Answers to exercises of the part on clusters."""

import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy

from .question import Question, Task

_SEEN = [{"9": "a", "10": "b", "11": "c"}, {"9": "a", "10": "b", "11": "d"}]


def _newest(function):
    """What is wrong with a learner's `newest` of the chapter on recovery."""
    for seen, right in [
        ([{"10": "a", "20": "b"}, {"10": "a"}], 10),
        (_SEEN, 10),
        ([{"7": "a"}, {"7": "a"}, {}], 0),
    ]:
        found = function(seen)
        if found != right:
            return f"For {seen} it is {right}, not {found!r}."
    return ""


def _pieces(step, *, full=False):
    yield f"{step:4}".encode()
    if full:
        raise OSError("no room left")
    yield b"whole"


def _save(function):
    """What is wrong with a learner's `save` of the same chapter."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for step in (8, 9, 10):
            function(folder, step, _pieces(step))
        if problem := _left(folder, "steps 8, 9, 10"):
            return problem
        with suppress(OSError):
            function(folder, 11, _pieces(11, full=True))
            return "The disk was full, and your caller is not told: let the error pass."
        return _left(folder, "a full disk")


def _left(folder, when):
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    whole = {f"{step}.ckpt": b"".join(_pieces(step)) for step in range(8, 12)}
    names = sorted(found, key=lambda name: (len(name), name))
    said = [("" if found[name] == whole.get(name) else "a part of ")
            + name.partition(".")[0] for name in names]  # fmt: skip
    if said == ["9", "10"]:
        return ""
    return f"After {when}, there are: {', '.join(said) or 'no files'}."


def _right_newest(seen):
    common = set.intersection(*(set(own.items()) for own in seen))
    return max((int(step) for step, _ in common), default=0)


def _right_save(folder, step, pieces):
    part = folder / f"{step}.part"
    try:
        with part.open("wb") as file:
            file.writelines(pieces)
        part.replace(folder / f"{step}.ckpt")
    finally:
        part.unlink(missing_ok=True)
    for old in sorted(folder.iterdir(), key=lambda path: int(path.stem))[:-2]:
        old.unlink()


def _without_checksums(seen):
    return max(map(int, set.intersection(*map(set, seen))), default=0)


def _as_texts(seen):
    common = set.intersection(*(set(own.items()) for own in seen))
    return int(max((step for step, _ in common), default=0))


def _in_place(folder, step, pieces):
    with (folder / f"{step}.ckpt").open("wb") as file:
        file.writelines(pieces)
    for old in sorted(folder.iterdir(), key=lambda path: int(path.stem))[:-2]:
        old.unlink()


def _keeps_all(folder, step, pieces):
    (folder / f"{step}.ckpt").write_bytes(b"".join(pieces))


def _place(function):
    """What is wrong with a learner's `place` of the chapter on launching."""
    roles = ["server", "worker", "worker"]
    for hosts, right in [
        ([("a", 5), ("b", 5)], "a, b, a"),
        ([("a", 1), ("b", 3)], "a, b, b"),
    ]:
        placed = function(hosts, roles)
        found = ", ".join(name for _, name in placed)
        if found != right:
            has = ", ".join(f"{name} has {slots}" for name, slots in hosts)
            return f"For {has} it is {right}, not {found}."
        if [role for role, _ in placed] != roles:
            return f"The roles are {roles}, in this order."
    with suppress(ValueError):
        function([("a", 1), ("b", 1)], roles)
        return "Without room for all, raise ValueError."
    return ""


def _right_place(hosts, roles):
    turns = range(max(slots for _, slots in hosts))
    places = [name for turn in turns for name, slots in hosts if turn < slots]
    if len(roles) > len(places):
        raise ValueError(f"{len(roles)} processes, and {len(places)} slots")
    return list(zip(roles, places))


def _as_if_no_slots(hosts, roles):
    return [(role, hosts[i % len(hosts)][0]) for i, role in enumerate(roles)]


def _fills_up(hosts, roles):
    return list(zip(roles, [name for name, slots in hosts for _ in range(slots)]))


def _supervise(function):
    """What is wrong with a learner's `supervise` of the same chapter."""
    with TemporaryDirectory() as folder:
        number = Path(folder, "number")
        runs = ["sh", "-c", f"echo $$ > {number}; exec sleep 2"]
        fails = ["sh", "-c", f"until [ -s {number} ]; do sleep 0.01; done; exit 7"]
        for when, commands, deadline, right in [
            ("When all end well", [["true"], ["true"]], 60, 0),
            ("After the deadline", [runs], 0.5, 124),
            ("After a failure", [runs, fails, ["true"]], 60, 7),
        ]:
            number.unlink(missing_ok=True)
            found = function(commands, deadline)
            if found != right:
                return f"{when}, return {right}, not {found!r}."
            if number.exists() and Path(f"/proc/{number.read_text().strip()}").exists():
                return f"{when}, a process still runs."
    return ""


def _right_supervise(commands, deadline, *, ends=True):
    end, codes = time.monotonic() + deadline, [None]
    running = [subprocess.Popen(words) for words in commands]
    while None in codes and not any(codes) and time.monotonic() < end:
        time.sleep(0.01)
        codes = [process.poll() for process in running]
    for process in running if ends else ():
        process.kill()
        process.wait()
    return next(filter(None, codes), 124 if None in codes else 0)


def _leaves_some(commands, deadline):
    return _right_supervise(commands, deadline, ends=deadline < 1)


def _server(kind):
    """What is wrong with a learner's `Server` of the chapter on bad networks."""
    for what, messages, right in [
        ("3 and 4, each once", [(0, 0, 3), (1, 0, 4)], 7),
        ("3, and 4 twice", [(0, 0, 3), (1, 0, 4), (1, 0, 4)], 7),
        ("a late copy of the first", [(0, 0, 3), (0, 1, 5), (0, 0, 3)], 8),
    ]:
        server = kind()
        for message in messages:
            server.take(*message)
        if server.total != right:
            return f"After {what}, the total is {server.total}, not {right}."
    return ""


class _Server:
    def __init__(self):
        self.total, self.seen = 0, set()

    def take(self, worker, number, value):
        self.total += value * ((worker, number) not in self.seen)
        self.seen.add((worker, number))


class _TakesAll(_Server):
    def take(self, worker, number, value):
        self.total += value


class _ForgetsWho(_Server):
    def take(self, worker, number, value):
        super().take(0, number, value)


def _seconds(function):
    """What is wrong with a learner's `seconds` of the same chapter."""
    for case in [(1, 1, 1, 1), (2, 1, 1, 1), (2, 2, 1, 1), (2, 1, 1 / 16, 1),
                 (2, 1, 1 / 16, 0.1), (2, 4, 1, 1)]:  # fmt: skip
        found, right = (f([250_000] * 4, 100, *case) for f in (function, _by_bytes))
        if abs(found - right) > 1e-6:
            return f"For {case} it is {right:.3f} s, not {found:.3f} s."
    return ""


def _by_bytes(sizes, mbit, workers, servers, ratio, pulls):
    moved = 4 * sum(sizes) * (ratio + pulls)
    return 8 * moved * max(workers / servers, 1) / (mbit * 1e6)


def _servers_alone(sizes, mbit, workers, servers, ratio, pulls):
    return 8 * 4 * sum(sizes) * (ratio + pulls) * workers / servers / (mbit * 1e6)


def _sources(function):
    """What is wrong with a learner's `sources` of the chapter on shards."""
    for case in [(12, 4, 0, 2), (12, 2, 1, 3), (11, 3, 2, 4), (2, 3, 0, 3)]:
        found = [tuple(piece) for piece in function(*case)]
        if found != _right_sources(*case):
            return f"For {case} it is {_right_sources(*case)}, not {found}."
    return ""


def _right_sources(size, m, rank, n):
    own = range(rank * size // n, (rank + 1) * size // n)
    found = [(i, [e for e in own if i * size // m <= e < (i + 1) * size // m])
             for i in range(m)]  # fmt: skip
    return [(i, part[0] - i * size // m, part[-1] + 1 - i * size // m)
            for i, part in found if part]  # fmt: skip


_TWO_PIECES = [(0, 0, 3), (1, 0, 3)]


def _one_shard(size, m, rank, n):
    return [(rank, 0, size // n)]


def _saver(kind):
    """What is wrong with a learner's `Saver` of the same chapter."""
    go_on, written = threading.Event(), []

    def write(state):
        go_on.wait(5)
        written.append(state.tolist())
        if len(written) == 2:
            raise OSError("disk full")

    saver, state = kind(write), numpy.zeros(2)
    saver.save(state)
    if written:
        return "save came back after the write, not before."
    state += 1
    go_on.set()
    saver.save(state)
    with suppress(OSError):
        saver.wait()
        return "The second write raised OSError, and wait did not."
    saver.wait()
    first, was = written[0], [0, 0]
    return "" if first == was else f"save was called with {was}, written is {first}."


class _Saver:
    def __init__(self, write, copy=numpy.copy):
        self.write, self.copy, self.pool = write, copy, ThreadPoolExecutor(1)
        self.last = []

    def save(self, state):
        self.wait()
        self.last.append(self.pool.submit(self.write, self.copy(state)))

    def wait(self):
        if self.last:
            self.last.pop().result()


def _no_copy(write):
    return _Saver(write, copy=numpy.asarray)


QUESTIONS = {
    ("sharded_checkpoints", 1): Question(
        "the seconds",
        35,
        [
            (8.75, "Four workers of a machine share one disk."),
            (210, "That is one disk. All machines write side by side."),
            (17.5, "A disk of 2 GB/s writes 2 GB each second, not 4."),
        ],
    ),
    ("sharded_checkpoints", 2): Task(
        "your function sources",
        _right_sources,
        [(_one_shard, f"For (12, 4, 0, 2) it is {_TWO_PIECES}, not [(0, 0, 6)].")],
        judge=_sources,
    ),
    ("sharded_checkpoints", 3): Task(
        "your class Saver",
        _Saver,
        [(_no_copy, "save was called with [0, 0], written is [1.0, 1.0].")],
        judge=_saver,
    ),
    ("launching", 2): Task(
        "a function that places processes on hosts",
        _right_place,
        [
            (_as_if_no_slots, "For a has 1, b has 3 it is a, b, b, not a, b, a."),
            (_fills_up, "For a has 5, b has 5 it is a, b, a, not a, a, a."),
        ],
        judge=_place,
    ),
    ("launching", 3): Task(
        "a function that ends what it starts",
        _right_supervise,
        [(_leaves_some, "After a failure, a process still runs.")],
        judge=_supervise,
    ),
    ("bad_networks", 1): Question(
        "a time-out in milliseconds",
        3346,
        [
            (836, "That is one push by itself. Four share the link."),
            (800, "That is one push by itself. Four share the link."),
            (418, "A gigabit is not a gigabyte: a byte has eight bits."),
            (6691, "A message goes one way: nothing is pulled yet."),
        ],
        tolerance=0.05,
    ),
    ("bad_networks", 3): Question(
        "a number of servers",
        12,
        [
            (1, "One server moves the bytes of all twelve workers."),
            (6, "Then a server still moves twice as much as a worker."),
            (24, "Then the workers' links are the busiest. Fewer will do."),
        ],
    ),
    ("bad_networks", 2): Task(
        "a class whose objects add up what they take",
        _Server,
        [
            (_TakesAll, "After 3, and 4 twice, the total is 11, not 7."),
            (_ForgetsWho, "After 3 and 4, each once, the total is 3, not 7."),
        ],
        judge=_server,
    ),
    ("bad_networks", 4): Task(
        "a function that returns seconds",
        _by_bytes,
        [(_servers_alone, "For (2, 4, 1, 1) it is 0.640 s, not 0.320 s.")],
        judge=_seconds,
    ),
    ("recovery", 1): Question(
        "the minutes between two checkpoints, with 64 machines",
        24.4,
        [
            (196, "That is for one machine. Any of 64 can stop the job."),
            (12, "That is with 256 machines."),
            (1464, "These are seconds."),
        ],
        tolerance=0.03,
    ),
    ("recovery", 2): Task(
        "a function of what the workers see",
        _right_newest,
        [
            (_without_checksums, f"For {_SEEN} it is 10, not 11."),
            (_as_texts, f"For {_SEEN} it is 10, not 9."),
        ],
        judge=_newest,
    ),
    ("recovery", 3): Task(
        "a function that saves the pieces of a step in a folder",
        _right_save,
        [
            (_in_place, "After a full disk, there are: 9, 10, a part of 11."),
            (_keeps_all, "After steps 8, 9, 10, there are: 8, 9, 10."),
        ],
        judge=_save,
    ),
}
