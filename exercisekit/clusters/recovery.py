"""Exercises of the chapter *Faults and recovery*."""

from pathlib import Path
from tempfile import TemporaryDirectory

from ..question import Question, Task, compared


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
    1: Question(
        "the minutes between two checkpoints, with 64 machines",
        24.4,
        [
            (196, "That is for one machine. Any of 64 can stop the job."),
            (12, "That is with 256 machines."),
            (1464, "These are seconds."),
        ],
        tolerance=0.03,
    ),
    2: Task(
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
    3: Task(
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
