"""Answers to exercises of the part on clusters."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

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


QUESTIONS = {
    ("launching", 4): Question(
        "the exit code of the job",
        7,
        [
            (0, "That is what `launch.py` returns."),
            (1, "The book's launcher hands on the code of what failed first."),
        ],
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
