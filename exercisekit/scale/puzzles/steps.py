"""Puzzles on steps: waits, changed lines, forward steps, probes."""

import difflib
import functools
import itertools

import numpy

from ...question import of_case, shown
from .puzzle import Puzzle


def epoch_loss(step, batches):
    """Each device adds up its own losses; Python reads one number."""
    sums = [sum(losses) for losses in zip(*map(step, batches))]
    there = sums[0].ctx
    return float(sum(x.as_in_ctx(there) for x in sums))


def _reads_each_batch(step, batches):
    pairs = map(step, batches)
    return sum(float(a + b.as_in_ctx(a.ctx)) for a, b in pairs)


def _reads_nothing(step, batches):
    there, here = (sum(losses) for losses in zip(*map(step, batches)))
    return there.as_in_ctx(here.ctx) + here


def _measure_epoch_loss(function):
    from mxnet import np, npx

    from d2l_ext.data_parallel.diagnose import blocking_calls
    from d2l_ext.devices import try_all_devices

    made = [[np.array([float(b * (i + 1))], ctx=device)
             for i, device in enumerate(try_all_devices(2))]
            for b in range(8)]
    npx.set_np()  # without it, a sum of the shape () cannot be copied
    with blocking_calls() as waits:
        found = function(lambda batch: made[batch], range(8))
    if not isinstance(found, float):
        kind = f"{'MXNet ' * hasattr(found, 'asnumpy')}{type(found).__name__}"
        yield f"It returns {kind}, not a Python float."
    elif found != 84:
        yield f"The losses add up to 84, not to {found:g}."
    else:
        yield len(waits)


#: Trains on several devices; one line is wrong.
TRAINER = """\
def allreduce(data):
    for other in data[1:]:
        data[0] += other
    for other in data[1:]:
        other = data[0]

def train(w, shards, lr, momentum, steps):
    copies = [w.copy() for _ in shards]
    speeds = [numpy.zeros_like(w) for _ in shards]
    n = sum(len(y) for X, y in shards)
    for _ in range(steps):
        grads = [X.T @ (X @ c - y) / n for c, (X, y) in zip(copies, shards)]
        allreduce(grads)
        for c, v, g in zip(copies, speeds, grads):
            v *= momentum
            v += g
            c -= lr * v
    return copies"""


def mend(lines):
    """Copy the sum in line 5, which only gives it another name."""
    return [*lines[:4], "        other[:] = data[0]", *lines[5:]]


def _line_5(text):
    return lambda lines: [*lines[:4], f"        {text}", *lines[5:]]


def _measure_mend(function):
    lines = TRAINER.splitlines()
    mended = function(list(lines))
    mended = mended.splitlines() if isinstance(mended, str) else mended
    mended = "\n".join(line.rstrip() for line in mended).splitlines()
    names = {"numpy": numpy}
    exec("\n".join(mended), names)  # noqa: S102 - the learner's, as all of this
    random = numpy.random.RandomState(0)
    X, y = random.randn(9, 2).round(1), random.randn(9).round(1)
    right = True
    for ends in ([9], [4, 8], [2, 3, 9]):
        cut = [slice(a, b) for a, b in zip([0, *ends], ends)]
        shards = [(X[s].copy(), y[s].copy()) for s in cut]
        found = names["train"](numpy.ones(2), shards, 0.1, 0.5, 3)
        w, v = numpy.ones(2), numpy.zeros(2)
        whole, of = X[: ends[-1]], y[: ends[-1]]
        for _ in range(3):
            v = 0.5 * v + whole.T @ (whole @ w - of) / ends[-1]
            w = w - 0.1 * v
        if len(found) != len(ends) or not numpy.allclose(found, w):
            right = False
            yield (f"{of_case('{} shards', (len(ends),))}, 3 steps: the copies are "
                   f"{shown([numpy.round(c, 3).tolist() for c in found])}; one device "
                   f"alone gets {shown(w.round(3).tolist())}.")
    if right:
        codes = difflib.SequenceMatcher(None, lines, mended, autojunk=False)
        yield sum(max(b - a, d - c) for op, a, b, c, d in codes.get_opcodes()
                  if op != "equal")


class Tape:
    """A chain of layers that counts forward steps and keeps few activations.

    `at` is the current activation: 0 is the input, which is always kept.
    """

    def __init__(self, layers, slots):
        self.slots, self.left = slots, layers
        self.at, self.kept, self.steps = 0, {0}, 0

    def forward(self):
        """Compute the next activation from the current one."""
        if self.at >= self.left:
            raise ValueError(f"layer {self.at + 1} is not among the layers left")
        self.at, self.steps = self.at + 1, self.steps + 1

    def keep(self):
        """Put the current activation into a slot."""
        if len(self.kept | {self.at}) > self.slots + 1:
            raise ValueError(f"no slot is free for {self.at}: {sorted(self.kept)}")
        self.kept.add(self.at)

    def drop(self, i):
        """Free the slot of activation i."""
        self.kept.remove(i)

    def back_to(self, i):
        """Make activation i, which is kept, the current one."""
        if i not in self.kept:
            raise ValueError(f"activation {i} is not kept: keep it first, or go back "
                             f"to one of {sorted(self.kept)}")
        self.at = i

    def backward(self):
        """Do the last layer that is left; its input must be the current activation."""
        if self.at != self.left - 1:
            raise ValueError(
                f"layer {self.left} needs activation {self.left - 1}, not {self.at}")
        self.left -= 1


def undo(tape, layers, slots):
    """Look up what to keep next in a table of the fewest steps."""

    @functools.lru_cache(None)
    def fewest(n, s):  # steps for n layers with s slots, and what to keep
        if n == 1 or s == 0:
            return n * (n - 1) // 2, 0
        keep = range(1, n)
        return min((j + fewest(n - j, s - 1)[0] + fewest(j, s)[0], j) for j in keep)

    def go(first, s):  # what is left from activation `first` on
        while tape.left > first:
            ahead = fewest(tape.left - first, s)[1]
            tape.back_to(first)
            while tape.at < (first + ahead if ahead else tape.left - 1):
                tape.forward()
            if ahead:
                tape.keep()
                go(first + ahead, s - 1)
                tape.drop(first + ahead)
            else:
                tape.backward()

    go(0, slots)


def _from_kept(*kept):
    """Keep these activations on the way, and start again from the nearest."""

    def backwards(tape, layers, slots):
        for to in reversed(range(layers)):
            tape.back_to(max(i for i in tape.kept if i <= to))
            while tape.at < to:
                tape.forward()
                if tape.at in kept and to == layers - 1:
                    tape.keep()
            tape.backward()

    return backwards


def _measure_undo(function):
    tape = Tape(12, 2)
    function(tape, 12, 2)
    yield (of_case("{} layers had no backward.", (tape.left,)) if tape.left
           else tape.steps)


def two_slow(probe, n):
    """Probe the group that most nearly halves the pairs that are left."""
    left = [*itertools.combinations(range(n), 2)]
    groups = [set(g) for k in range(1, n) for g in itertools.combinations(range(n), k)]
    while len(left) > 1:
        hit = [sum(not group.isdisjoint(p) for p in left) for group in groups]
        group = min(zip(hit, groups), key=lambda g: abs(2 * g[0] - len(left)))[1]
        slow = probe(sorted(group))
        left = [pair for pair in left if slow != group.isdisjoint(pair)]
    return left[0]


def _one_by_one(probe, n):
    found = [i for i in range(n - 1) if probe([i])]
    return tuple(found if len(found) == 2 else [*found, n - 1])


def _halves(probe, among):
    """Return one slow device among these."""
    while len(among) > 1:
        half = among[: len(among) // 2]
        among = half if probe(half) else among[len(half) :]
    return among[0]


def _halves_twice(probe, n):
    first = _halves(probe, [*range(n)])
    return first, _halves(probe, [i for i in range(n) if i != first])


def _halves_once(probe, n):
    first = _halves(probe, [*range(n)])
    return first, first + 1


def _measure_two_slow(function):
    most = 0
    for pair in itertools.combinations(range(10), 2):
        probes = []

        def probe(group, pair=pair, probes=probes):
            probes.append(group)
            return not {*pair}.isdisjoint(group)

        found = function(probe, 10)
        try:
            right = sorted(found) == [*pair]
        except (TypeError, ValueError):  # not a pair of numbers
            right = False
        if not right:
            yield f"Devices {pair[0]} and {pair[1]} are slow; it finds {shown(found)}."
            return
        most = max(most, len(probes))
    yield most


QUESTIONS = {
    1: Puzzle.of(
        "One wait", "a function `epoch_loss(step, batches)`",
        epoch_loss, _measure_epoch_loss, ("Blocking calls", 16, 1, 1, 1), [
            (lambda step, batches:
             sum(float(loss) for batch in batches for loss in step(batch)),
             "Python waits for each loss: let the devices add up first."),
            (_reads_each_batch,
             "That waits for each batch: let each device add up all of its losses."),
            (lambda step, batches:
             sum(float(sum(losses)) for losses in zip(*map(step, batches))),
             "Let one device add both sums, and wait only for the result."),
            (_reads_nothing, "An array is a promise: the caller still has to wait."),
        ],
    ),
    3: Puzzle.of(
        "The wrong line", "a function `mend(lines)`",
        mend, _measure_mend, ("Changed lines", 2, 1, 1, 1), [
            (lambda lines: [*lines[:3], "    for i in range(1, len(data)):",
                            "        data[i] = data[0]", *lines[5:]],
             "Only one line is wrong: mend it where it stands."),
            (_line_5("other = data[0].copy()"),
             "Line 5 only gives `other` a new value: the list stays as it was."),
            (_line_5("data[0] = other"), "That loses the sum."),
            (_line_5("other += data[0]"),
             "That adds each device's own gradient once more."),
            (_line_5("other[:] = data[0] / len(data)"),
             "Line 12 has already divided by the total number of examples."),
            (lambda lines: [*lines[:17], "    return [copies[0]] * len(copies)"],
             "That hides the error: the other gradients come from copies that differ."),
        ],
    ),
    8: Puzzle.of(
        "Twelve layers, two slots", "a function `undo(tape, layers, slots)`",
        undo, _measure_undo, ("Forward steps", 66, 22, 21, 21), [
            (_from_kept(), "Nothing is kept: each layer starts from the input again."),
            (_from_kept(4, 8),
             "Is a slot used again when it becomes free? Equal parts leave it empty."),
            (_from_kept(6, 9),
             "Halves alone are not enough: use a slot again when it becomes free."),
            (_from_kept(3, 6, 9), "That needs three slots."),
        ],
    ),
    9: Puzzle.of(
        "Two stragglers", "a function `two_slow(probe, n)`",
        two_slow, _measure_two_slow, ("Probes at worst", 9, 7, 6, 6), [
            (_one_by_one, "A probe of a group can rule out several devices."),
            (_halves_twice,
             "Does a second search use all that the first found out about both?"),
            (_halves_once, "The second slow device need not be the next one."),
            (lambda probe, n: _halves(probe, [*range(n)]), "Two devices are slow."),
            (lambda probe, n: [two_slow(probe, n)],
             "Return the two devices, not a list of pairs."),
        ],
    ),
}
