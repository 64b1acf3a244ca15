"""Answers to exercises of the part on clusters."""

import os
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from unittest import mock

import numpy

from .question import Question, Task, compared, shown

# ---- sharded_checkpoints ----


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
                 for call in calls]  # fmt: skip
        if found != right:
            raised, not_ = ", ".join(found), ", ".join(right)
            called = ", ".join(calls)
            yield f"write raises OSError: {called} raise {raised}, and not {not_}."


# ---- launching ----


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
])  # fmt: skip


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


# ---- bad_networks ----


class Server:
    """Remembers which messages it has, by worker and number."""

    def __init__(self):
        self.total, self.seen = 0, set()

    def take(self, worker, number, value):
        message = worker, number
        self.total += value * (message not in self.seen)
        self.seen.add(message)


def _judge_server(kind):
    for messages, right in [
        ([(0, 0, 3)], 3),
        ([(0, 0, 3), (1, 0, 4)], 7),
        ([(0, 0, 3), (1, 0, 4), (1, 0, 4)], 7),
        ([(0, 0, 3), (0, 1, 3)], 6),
        ([(0, 0, 3), (0, 1, 5), (0, 0, 3)], 8),
        ([(0, 1, 5), (0, 0, 3)], 8),
        ([(0, 2, 5), (1, 2, 5), (0, 0, 3), (1, 2, 5), (0, 2, 5)], 13),
    ]:
        server = kind()
        for message in messages:
            server.take(*message)
        if server.total != right:
            yield f"After {messages}, the total is {server.total}, not {right}."


def seconds(sizes, mbit, workers, servers, ratio, pulls):
    """What the busier link moves: a server's or a worker's."""
    moved = 4 * sum(sizes) * (ratio + pulls)
    return 8 * moved * max(workers / servers, 1) / (mbit * 1e6)


# ---- recovery ----


def newest(seen):
    """Of the pairs of a step and a checksum that all have."""
    common = set(seen[0].items())
    for own in seen[1:]:
        common &= set(own.items())
    return max((int(step) for step, _ in common), default=0)


_SEEN = {"8": "a", "9": "a", "10": "b"}


def _pieces(step, *, full=False):
    yield f"{step:4}".encode()
    if full:
        raise OSError("no room left")
    yield b"whole"


def save(folder, step, pieces):
    part = folder / f"{step}.part"
    try:
        with part.open("wb") as file:
            file.writelines(pieces)
        part.replace(folder / f"{step}.ckpt")
    finally:
        part.unlink(missing_ok=True)
    for old in sorted(folder.iterdir(), key=lambda path: int(path.stem))[:-2]:
        old.unlink()


def _judge_save(function):
    for steps in (1,), (3, 9, 10), (98, 99, 100, 101):
        with TemporaryDirectory() as name:
            folder = Path(name)
            for step in steps:
                function(folder, step, _pieces(step))
            kept = list(steps[-2:])
            yield _left(folder, f"saves of {', '.join(map(str, steps))}", kept)
            try:
                function(folder, 200, _pieces(200, full=True))
                yield "The disk was full, and your caller is not told."
            except OSError:
                pass
            yield _left(folder, f"a full disk at 200, with {kept} before", kept)


def _left(folder, when, kept):
    said = []
    paths = sorted(folder.iterdir(), key=lambda path: (len(path.name), path.name))
    for path in paths:
        whole = path.read_bytes() == b"".join(_pieces(int(path.name.split(".")[0])))
        said.append(path.name + " (not whole)" * (not whole))
    right = [f"{step}.ckpt" for step in kept]
    there = ", ".join(said) or "no files"
    return "" if said == right else f"After {when}, there are: {there}."


def _in_place(folder, step, pieces):
    with (folder / f"{step}.ckpt").open("wb") as file:
        file.writelines(pieces)
    for old in sorted(folder.iterdir(), key=lambda path: int(path.stem))[:-2]:
        old.unlink()


def _removes_first(folder, step, pieces):
    for old in sorted(folder.iterdir(), key=lambda path: int(path.stem))[:-1]:
        old.unlink()
    save(folder, step, pieces)


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
    ("sharded_checkpoints", 3): Task(
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
    ("launching", 2): Task(
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
    ("launching", 3): Task(
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
        Server,
        [
            ("(message not in self.seen)", "1", "A copy of a message is added again."),
            ("worker, number\n", "number\n", "Two workers both have a message 0."),
            ("worker, number\n", "worker, value\n",
             "Two messages may have the same value: their number tells them apart."),
            ("worker, number\n", "worker\n", "A worker has more than one message."),
            ("self.seen.add(message)", "self.seen = {message}",
             "A copy may come later than the next message: remember all."),
            ("(message not in self.seen)",
             "all(m < message for m in self.seen if m[0] == worker)",
             "They come in any order: a lower number may be new."),
            ("value * (", "(", "That counts the messages. Their values are added up."),
            ("):\n        self.total, self.seen = 0, set()",
             ", seen=set()):\n        self.total, self.seen = 0, seen",
             "Two servers share one memory: make it in `__init__`."),
        ],
        judge=_judge_server,
    ),
    ("bad_networks", 4): Task(
        "a function that returns seconds",
        seconds,
        [
            ("max(workers / servers, 1)", "workers / servers",
             "With many servers, the workers' own links are the busier ones."),
            ("max(workers / servers, 1)", "1",
             "Several workers share the link of a server."),
            ("max(workers / servers, 1)", "workers",
             "The servers share the arrays among them."),
            ("8 * moved", "moved", "A link moves bits, and a byte has eight."),
            ("4 * sum(sizes)", "sum(sizes)", "A number of float32 has 4 bytes."),
            ("(ratio + pulls)", "ratio * (1 + pulls)",
             "Only what is pushed is compressed. What is pulled is not."),
            ("(ratio + pulls)", "(ratio + 1)",
             "The weights are not pulled after each push."),
            ("(ratio + pulls)", "ratio", "Weights are pulled, too."),
            ("1e6", "2**20", "A megabit is a million bits."),
            ("sum(sizes)", "max(sizes)", "All the arrays are moved, not one."),
        ],
        judge=compared(seconds, [
            ([1000], 1, 1, 1, 1, 1), ([1000], 1, 2, 1, 1, 1), ([1000], 1, 2, 4, 1, 1),
            ([1000], 1, 4, 2, 1 / 16, 1), ([250_000, 10], 100, 2, 1, 1 / 16, 0.1),
        ], tolerance=1e-6),
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
        newest,
        [
            (lambda seen: max(map(int, set.intersection(*map(set, seen))), default=0),
             "The same step with two checksums is not the same checkpoint."),
            ("max((int(step) for step, _ in common), default=0)",
             "int(max((step for step, _ in common), default=0))",
             "The steps are texts, and as texts 9 comes after 10."),
            ("common &= ", "common |= ",
             "One worker has it: *all* have to have it."),
            ("seen[1:]", "seen[1:2]", "There may be more workers than two."),
            (", default=0", "", "If they have none in common, it is 0."),
            ("max(", "min(", "That is the oldest that all have."),
            (lambda seen: min(max(map(int, own), default=0) for own in seen),
             "The oldest of the newest ones need not be with all."),
            (lambda seen: str(newest(seen)), "A number is asked for, and not a text."),
        ],
        judge=compared(newest, [
            ([{"7": "a"}],), ([{"7": "a"}, {}],), ([{"7": "a"}, {"7": "a"}, {}],),
            ([{"10": "a", "20": "b"}, {"10": "a"}],), ([{"99": "a"}, {"100": "a"}],),
            ([{**_SEEN, "11": "c"}, {**_SEEN, "11": "d"}],),
            ([_SEEN, _SEEN, {"9": "a", "8": "b"}],),
        ]),
    ),
    ("recovery", 3): Task(
        "a function that saves the pieces of a step in a folder",
        save,
        [
            (_in_place,
             "A file that is written in place has its name before it is whole."),
            ("    finally:\n        part.unlink(missing_ok=True)",
             "    except OSError:\n        return part.unlink(missing_ok=True)",
             "The error is swallowed: who called believes that all is saved."),
            ("part.unlink(missing_ok=True)", "pass",
             "What was begun stays behind: remove it, also when an error passes."),
            ("int(path.stem)", "path.stem", "As texts, 9 comes after 10."),
            ("[:-2]", "[:-1]", "Two are to be left: one may turn out to be damaged."),
            ("[:-2]", "[:-3]", "Too many are left: the disk fills up."),
            ("sorted(folder.iterdir(), key=lambda path: int(path.stem))[:-2]",
             "folder.glob(f'{step - 2}.ckpt')",
             "Steps that are saved need not follow each other."),
            (_removes_first, "It removes an old one before the new one is whole."),
        ],
        judge=_judge_save,
    ),
}
