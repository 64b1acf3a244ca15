"""Twelve runs of a program with one fault each: their logs, and their faults."""

import inspect
import textwrap
from functools import cache

import numpy

from . import program
from .tools import LIMIT, NAMES, clip, norm_of, summed

#: The steps of a run; it stops before `RESTART` and resumes from its checkpoint.
RESTART, LAST, ROWS = 6, 10, 128
#: The cause, the line of the program, and its replacement; line 0: no fault.
CASES = {
    1: ("same shard", 8, "shards = [rows[:16], rows[:16]]"),
    2: ("mean of means", 11,
        "gradients = [[g / len(r) / 2 for g in f[1]] for r, f in zip(shards, found)]"),
    3: ("schedule", 4, "lr = 0.2 * 0.9 ** (step * len(devices))"),
    4: ("left out", 12, "allreduce([own[:-1] for own in gradients])"),
    5: ("same order", 6, "order = RandomState(0).permutation(len(X))"),
    6: ("different starts", 2,
        "replicas = [copied(saved or initial(seed=i)) for i, _ in enumerate(devices)]"),
    7: ("copies", 13, "norm = global_norm(gradients, copies=1)"),
    8: ("data again", 5, "epoch, batch = divmod(step - first, len(X) // 32)"),
    9: ("metric", 10,
        "loss = sum(total / len(r) for r, (total, _) in zip(shards, found)) / 2"),
    10: ("factor", 11,
         "gradients = [[g / len(shards[0]) for g in own] for _, own in found]"),
    11: ("torn checkpoint", 19,
         "saved[step % 2 :: 2] = copied(replicas[0])[step % 2 :: 2]"),
    12: ("flipped bit", 0, ""),
}
CAUSES = sorted(cause for cause, _, _ in CASES.values())
HEAD = (" step   rows of device 0 | 1          lr    loss    norm   twin           "
        "arrays that differ")


def program_lines():
    """Return the program's lines, from its `def`."""
    return inspect.getsource(program.train).splitlines()


def listing(case=None):
    """Return the numbered program; with a case, the faulty line above the right one."""
    lines = program_lines()
    if case is None:
        return "\n".join(f"{n:2} {line}" for n, line in enumerate(lines, 1))
    _, line, wrong = CASES[case]
    if not line:
        return "No line is wrong."
    return f"{line:2} wrong: {wrong}\n   right: {lines[line - 1].strip()}"


@cache
def run(case=None):
    """Return the log of a run: a list of lines. `case`: a number of `CASES` or None."""
    from d2l_ext.data import load_arrays
    from d2l_ext.devices import try_all_devices

    digits = load_arrays("digits")
    X = digits.train_X[:ROWS, 0, ::2, ::2].reshape(ROWS, -1).astype("float64")
    log = Log(X, digits.train_y[:ROWS], flip=case and CASES[case][0] == "flipped bit")
    train, devices = _function(case), try_all_devices(2)
    torn = case and CASES[case][0] == "torn checkpoint"
    saved = program.initial(seed=0) if torn else []
    for first, last in ((0, RESTART), (RESTART, LAST)):
        train(log.X, log.y, devices, log, saved, first, last)
    return [HEAD, *log.lines]


def _function(case):
    """Return `train`, with the faulty line of the case."""
    lines = program_lines()
    if case and CASES[case][1]:
        _, line, wrong = CASES[case]
        old = lines[line - 1]
        lines[line - 1] = old[: len(old) - len(old.lstrip())] + wrong
    names = dict(vars(program))
    exec("\n".join(lines), names)  # noqa: S102 - our own lines
    return names["train"]


class Log:
    """A log with a line per step, from the instruments of two chapters."""

    def __init__(self, X, y, flip=False):
        self.X, self.y, self.flip, self.lines = X, y, flip, []

    def __call__(self, step, rows, shards, replicas, gradients, lr, loss, norm):
        if step == RESTART:
            self.lines.append("       restart from the last checkpoint")
        if self.flip and step == 4:
            replicas[1][0].view("u8")[50, 3] ^= numpy.uint64(1 << 50)
        read = " | ".join(" ".join(f"{r:3}" for r in shard[:3]) for shard in shards)
        odd = [name for name, a, b in zip(NAMES, *replicas)
               if a.tobytes() != b.tobytes()]
        self.lines.append(
            f"{step:5}  {read} …  {lr:.3f}  {loss:6.3f}  {norm:6.3f}  "
            f"{self.twin(rows, replicas[0], gradients[0])}  {' '.join(odd) or 'none'}"
        )

    def twin(self, rows, weights, found):
        """Return the length over one device's gradient's, and the angle in degrees."""
        from d2l_ext.devices import try_all_devices

        (device,) = try_all_devices(1)
        right = [g / len(rows)
                 for g in summed(weights, self.X[rows], self.y[rows], device)[1]]
        clip([right], norm_of(right), LIMIT)
        dot = sum((f * g).sum() for f, g in zip(found, right))
        cosine = min(1 - 1e-14, dot / norm_of(found) / norm_of(right))
        angle = numpy.degrees(numpy.arccos(cosine))
        return f"{norm_of(found) / norm_of(right):.3f} × {angle:4.1f}°"


def symptom(case=None):
    """Print the log of a case's run; by default, of the program without a fault."""
    print("\n".join(run(case)))


def told(case):
    """Print the cause and the line of a case, with the right line."""
    cause, line, _ = CASES[case]
    print(textwrap.fill(f"Cause: {cause}, line {line}.", 80))
    print(listing(case))
