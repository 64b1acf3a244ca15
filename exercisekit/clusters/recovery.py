"""Exercises of the chapter *Faults and recovery*."""

from pathlib import Path
from tempfile import TemporaryDirectory

from ..question import Question, Task, compared


def newest(seen):
    """Return the newest step among the pairs (step, checksum) that all workers have."""
    common = set(seen[0].items())
    for own in seen[1:]:
        common &= set(own.items())
    return max((int(step) for step, _ in common), default=0)


def _newest_as_text(seen):
    common = set.intersection(*(set(own.items()) for own in seen))
    return int(max((step for step, _ in common), default=0))


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
    for old in sorted(folder.glob("*.ckpt"), key=lambda path: int(path.stem))[:-2]:
        old.unlink()


def _judge_save(function):
    for old, steps in (
        ([], [1]), ([0, 1, 2], [3, 9, 10]), ([0, 1, 2], [98, 99, 100, 101])
    ):
        with TemporaryDirectory() as name:
            folder = Path(name)
            for step in old:
                (folder / f"{step}.ckpt").write_bytes(b"".join(_pieces(step)))
            for step in steps:
                function(folder, step, _pieces(step))
            kept, before = steps[-2:], f", with {old} there before" if old else ""
            yield _left(folder, f"saving {', '.join(map(str, steps))}{before}", kept)
            for step in 200, steps[-1]:
                try:
                    function(folder, step, _pieces(step, full=True))
                    yield "The disk was full, but no error reaches the caller."
                except OSError:
                    pass
                when = f"a full disk at step {step}, with {kept} saved"
                yield _left(folder, when, kept)


def _left(folder, when, kept):
    paths = sorted(folder.iterdir(), key=lambda path: (len(path.name), path.name))
    said = [path.name + " (incomplete)" * (not _is_whole(path)) for path in paths]
    right = [f"{step}.ckpt" for step in kept]
    there = ", ".join(said) or "no files"
    return "" if said == right else f"After {when}, the folder has: {there}."


def _is_whole(path):
    """Return whether a file has all pieces: of the step in its name, if it has one."""
    content = path.read_bytes() if path.is_file() else b""
    step = path.name.strip(".").split(".")[0]
    if step.isdecimal():
        return content == b"".join(_pieces(int(step)))
    return content.endswith(b"whole")


def _newest_stay(folder, keep=2):
    for old in sorted(folder.iterdir(), key=lambda path: int(path.stem))[:-keep]:
        old.unlink()


def _in_place(folder, step, pieces):
    with (folder / f"{step}.ckpt").open("wb") as file:
        file.writelines(pieces)
    _newest_stay(folder)


def _leaves_its_part(folder, step, pieces):
    part = folder / f"{step}.part"
    with part.open("wb") as file:
        file.writelines(pieces)
    part.replace(folder / f"{step}.ckpt")
    _newest_stay(folder)


def _removes_first(folder, step, pieces):
    _newest_stay(folder, keep=1)
    save(folder, step, pieces)


QUESTIONS = {
    1: Question(
        "the minutes between two checkpoints, with 64 machines",
        24.4,
        [
            (196, "That is for one machine. Any of the 64 can stop the job."),
            (12, "That is for 256 machines."),
            (1464, "That is in seconds."),
        ],
        tolerance=0.03,
    ),
    2: Task(
        "a function `newest(seen)`",
        newest,
        [
            (lambda seen: max(map(int, set.intersection(*map(set, seen))), default=0),
             "The same step with two checksums is not the same checkpoint."),
            (_newest_as_text, "The steps are strings, and as strings 9 follows 10."),
            (lambda seen: max((int(step) for own in seen for step in own), default=0),
             "One worker has that checkpoint, but *all* must have it."),
        ],
        judge=compared(newest, [
            ([{"7": "a"}],), ([{"7": "a"}, {}],), ([{"7": "a"}, {"7": "a"}, {}],),
            ([{"10": "a", "20": "b"}, {"10": "a"}],), ([{"99": "a"}, {"100": "a"}],),
            ([{**_SEEN, "11": "c"}, {**_SEEN, "11": "d"}],),
            ([_SEEN, _SEEN, {"9": "a", "8": "b"}],), ([{"8": "a"}, {}, {"8": "a"}],),
        ]),
    ),
    3: Task(
        "a function `save(folder, step, pieces)`",
        save,
        [
            (_in_place, "The file gets its name before it is complete."),
            (_leaves_its_part,
             "The unfinished file stays: remove it, also after an error."),
            (_removes_first, "It removes an old file before the new one is complete."),
        ],
        judge=_judge_save,
    ),
}
