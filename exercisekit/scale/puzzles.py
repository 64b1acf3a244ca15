"""Answers to the puzzles: what each counts, its target, and the best that is known.

The machines that count are here, too, so that a reader can try code on them.
"""

import difflib
import functools
import itertools
from dataclasses import dataclass

import numpy

from ..data_parallel.halving import folded
from ..question import Note, Task, shown


@dataclass(frozen=True)
class Puzzle(Task):
    """Code that is right, and counted: `unit`, at most `target` of it, `best` known.

    `first` is the count of the obvious first attempt, the first of `wrong`. A count
    below `least` cannot be: the code reads what nobody sent it.
    """

    title: str = ""
    unit: str = ""
    first: int = 0
    target: int = 0
    best: int = 0
    least: int = 0

    @classmethod
    def of(cls, title, asked, right, measure, counts, wrong):
        """`measure` takes the learner's function and yields what is not right, or the
        count; `counts` are the unit, and those of the first attempt, the
        target, the best known, and the least there is.
        """
        unit, _, target, best, least = counts
        asked = f"{asked}. {unit}: at most {target}; the best known is {best}"

        def judge(function):
            for found in measure(function):
                if isinstance(found, str):
                    yield found
                elif found < least:
                    yield (f"{unit}: {found}, and {least} is the least that there is: "
                           "does it read what it was not sent?")  # fmt: skip
                elif found > target:
                    yield f"Right so far. {unit}: {found}; the target is {target}."
                else:
                    yield Note(f"{unit}: {found}; the target was {target}, "
                               f"the best known is {best}.")  # fmt: skip

        return cls(asked, right, wrong, 0.0, judge, title, *counts)


class Wire:
    """Delivers copies of arrays; counts rounds, and the bytes from each to each."""

    def __init__(self):
        self.rounds, self.sent = 0, {}

    def exchange(self, messages):
        """`messages` is `{(from, to): array}`: at most one from each, and to each."""
        for end in zip(*messages):
            if len({*end}) < len(messages):
                raise ValueError(f"two messages in one round: {sorted(messages)}")
        self.rounds += 1
        for pair, x in messages.items():
            self.sent[pair] = self.sent.get(pair, 0) + x.nbytes
        return {pair: x.copy() for pair, x in messages.items()}

    def busiest(self, pairs=lambda i, j: True):
        """The most bytes that a device sends, over the links in `pairs`."""
        sent = {}
        for (i, j), nbytes in self.sent.items():
            sent[i] = sent.get(i, 0) + nbytes * pairs(i, j)
        return max(sent.values(), default=0)


def _unlike(found, right):
    """What is not right with one array for each device, in words; "" if all is well."""
    for i, (x, y) in enumerate(zip(found, right)):
        if numpy.shape(x) != numpy.shape(y):
            return f"Device {i} ends with {numpy.size(x)} numbers, and not {len(y)}."
        if not numpy.allclose(x, y):
            at = int(numpy.argmax(~numpy.isclose(x, y)))
            return (f"On device {i}, number {at} is {shown(float(x[at]))}, and not "
                    f"{shown(float(y[at]))}.")  # fmt: skip
    return ""


# ---- 1: one wait ----


def epoch_loss(step, batches):
    """Each device adds up its own; one number is read."""
    sums = [sum(losses) for losses in zip(*map(step, batches))]
    there = sums[0].ctx
    return float(sum(x.as_in_ctx(there) for x in sums))


def _reads_each(step, batches):
    return sum(float(loss) for batch in batches for loss in step(batch))


def _reads_each_batch(step, batches):
    pairs = map(step, batches)
    return sum(float(a + b.as_in_ctx(a.ctx)) for a, b in pairs)


def _measure_epoch_loss(function):
    from mxnet import np

    from d2l_ext.data_parallel.diagnose import blocking_calls
    from d2l_ext.devices import try_all_devices

    made = [[np.array([float(b * (i + 1))], ctx=device)
             for i, device in enumerate(try_all_devices(2))]
            for b in range(8)]  # fmt: skip
    with blocking_calls() as waits:
        found = function(lambda batch: made[batch], range(8))
    if not isinstance(found, float):
        yield f"It gives {type(found).__name__}, and not a number that Python has."
    elif found != 84:
        yield f"The losses are 84 together, and not {found:g}."
    else:
        yield len(waits)


# ---- 2: keys over servers ----

#: Megabytes of each key.
KEYS = (12, 7, 8, 7, 11, 2, 10, 9)


def place(sizes, servers):
    """Every way to place them; the first key's server is any."""
    ways = itertools.product(range(servers), repeat=len(sizes) - 1)
    ways = ([0, *way] for way in ways)
    return min(ways, key=lambda way: max(loads(sizes, way, servers)))


def loads(sizes, way, servers):
    """What each server has to hold, if key i is on server `way[i]`."""
    return [sum(s for s, at in zip(sizes, way) if at == i) for i in range(servers)]


def _to_the_lightest(sizes, servers, order):
    way, held = [0] * len(sizes), [0] * servers
    for i in order:
        way[i] = held.index(min(held))
        held[way[i]] += sizes[i]
    return way


def _largest_first(sizes, servers):
    order = sorted(range(len(sizes)), key=lambda i: -sizes[i])
    return _to_the_lightest(sizes, servers, order)


def _measure_place(function):
    way = [*function(list(KEYS), 3)]
    if len(way) != len(KEYS) or not {*way} <= {0, 1, 2}:
        yield f"{shown(way)} is not a server, 0 to 2, for each of {len(KEYS)} keys."
    else:
        yield max(loads(KEYS, way, 3))


# ---- 3: the wrong line ----

#: Trains on several devices, and one line is wrong.
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
    """Line 5 only gives the sum another name; nothing is copied."""
    return [*lines[:4], "        other[:] = data[0]", *lines[5:]]


def _measure_mend(function):
    lines = TRAINER.splitlines()
    mended = [*function(list(lines))]
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
            yield (f"{len(ends)} shards, 3 steps: the copies are "
                   f"{shown([numpy.round(c, 3).tolist() for c in found])}, and one "
                   f"device has {shown(w.round(3).tolist())}.")  # fmt: skip
    if right:
        codes = difflib.SequenceMatcher(None, lines, mended, autojunk=False)
        yield sum(max(b - a, d - c) for op, a, b, c, d in codes.get_opcodes()
                  if op != "equal")  # fmt: skip


# ---- 4: four become three ----


def four_to_three(data, exchange):
    """Each keeps what it may, and gets the beginning of its right neighbour's."""
    n = len(data[0]) // 3
    got = exchange({(i, i - 1): data[i][: i * n] for i in (1, 2, 3)})
    for i in range(3):
        data[i] = numpy.concatenate([data[i][i * n :], got[i + 1, i]])


def _by_the_first(data, exchange):
    parts = [data[0], *(exchange({(i, 0): data[i]})[i, 0] for i in (1, 2, 3))]
    thirds = numpy.concatenate(parts).reshape(3, -1)
    data[:3] = thirds[0], *(exchange({(0, i): thirds[i]})[0, i] for i in (1, 2))


def _whole_shards(data, exchange):
    n = len(data[0]) // 3
    got = exchange({(i, i - 1): data[i] for i in (1, 2, 3)})
    data[:3] = [
        numpy.concatenate([data[i][i * n :], got[i + 1, i][: (i + 1) * n]])
        for i in range(3)
    ]


def _measure_four_to_three(function):
    wire = Wire()
    data = [*numpy.arange(36.0).reshape(4, 9)]
    function(data, wire.exchange)
    problem = _unlike(data[:3], numpy.arange(36.0).reshape(3, 12))
    yield problem or sum(wire.sent.values())


# ---- 5: two hosts ----


def spread(data, exchange):
    """A quarter to each in the host, four links at a time, and a ring in each host."""
    n = len(data[0]) // 4
    part = [slice(i * n, (i + 1) * n) for i in range(4)]

    def put(messages):  # {(from, to): part}
        sent = {(i, j): data[i][part[p]] for (i, j), p in messages.items()}
        for (i, j), x in exchange(sent).items():
            data[j][part[messages[i, j]]] = x

    for i in (1, 2, 3):
        put({(0, i): i})
    put({(i, i + 4): i for i in range(4)})
    for step in range(3):
        ring = [(h + i, h + (i + 1) % 4) for h in (0, 4) for i in range(4)]
        put({(i, j): (i - step) % 4 for i, j in ring})


def _by_a_tree(data, exchange):
    for distance in (4, 2, 1):
        pairs = {(i, i + distance): data[i] for i in range(0, 8, 2 * distance)}
        for (_, j), x in exchange(pairs).items():
            data[j][:] = x


def _to_each(data, exchange):
    for j in range(1, 8):
        data[j][:] = exchange({(0, j): data[0]})[0, j]


def _measure_spread(function):
    wire = Wire()
    data = [numpy.arange(64.0) + 1, *numpy.zeros((7, 64))]
    function(data, wire.exchange)
    problem = _unlike(data, [numpy.arange(64.0) + 1] * 8)
    yield problem or wire.busiest(lambda i, j: i // 4 != j // 4)


# ---- 6: the loss of a split vocabulary ----


def split_loss(parts, y, gather):
    """One number for each row; the device that has the label's column does the rest."""
    own = []
    for part in parts:
        top = part.max(axis=1)
        own.append(top + numpy.log(numpy.exp(part - top[:, None]).sum(axis=1)))
    whole = numpy.logaddexp.reduce(gather(own))
    width = parts[0].shape[1]
    sums = [
        sum(whole[r] - part[r, c % width] for r, c in enumerate(y) if c // width == i)
        for i, part in enumerate(parts)
    ]
    return sum(gather(sums)) / len(y)


def _gathers_all(parts, y, gather):
    whole = numpy.concatenate(gather(parts), axis=1)
    top = whole.max(axis=1)
    sums = top + numpy.log(numpy.exp(whole - top[:, None]).sum(axis=1))
    return (sums - whole[numpy.arange(len(y)), y]).mean()


def _three_a_row(parts, y, gather):
    top = numpy.max(gather([part.max(axis=1) for part in parts]), axis=0)
    sums = gather([numpy.exp(part - top[:, None]).sum(axis=1) for part in parts])
    width = parts[0].shape[1]
    labels = [
        numpy.array([p[r, c % width] * (c // width == i) for r, c in enumerate(y)])
        for i, p in enumerate(parts)
    ]
    return (top + numpy.log(sum(sums)) - sum(gather(labels))).mean()


def _measure_split_loss(function):
    random = numpy.random.RandomState(0)
    logits = random.randn(6, 32).round(2) * 3 + numpy.arange(6)[:, None] * 300
    y, sent = numpy.array([0, 31, 9, 17, 8, 25]), []

    def gather(values):
        sent.append(max(numpy.size(value) for value in values))
        return [numpy.array(value) for value in values]

    found = float(function([*numpy.split(logits.copy(), 4, axis=1)], y.copy(), gather))
    tops = logits.max(axis=1)
    sums = numpy.log(numpy.exp(logits - tops[:, None]).sum(axis=1)) + tops
    right = (sums - logits[range(6), y]).mean()
    if not numpy.isclose(found, right):
        yield f"The loss is {right:.4f}, and not {found:.4f}."
    else:
        yield sum(sent)


# ---- 7: hide this exchange ----

#: Of each layer: ticks of its backward, and ticks that its gradient takes on the link.
BACKWARD, GRADIENTS = (4, 5, 3, 1, 3, 3, 5, 4), (5, 2, 2, 5, 3, 2, 5, 2)
#: Ticks that each message takes besides.
LATENCY = 3


def hide(backward, gradients, latency):
    """Every way to cut the layers, from the last on, into buckets."""
    last, ways = len(backward) - 1, []
    for cuts in itertools.product([False, True], repeat=last):
        way = [[last]]
        for i, new in zip(range(last - 1, -1, -1), cuts):
            if new:
                way.append([])
            way[-1].append(i)
        ways.append(way)
    return min(ways, key=lambda way: exposed(way, backward, gradients, latency))


def exposed(buckets, backward, gradients, latency):
    """Ticks that the link goes on after backward; it sends bucket after bucket."""
    made = numpy.cumsum(backward[::-1])[::-1]  # when each layer's gradient is there
    free = 0
    for bucket in buckets:
        ready = max(made[i] for i in bucket)
        free = max(free, ready) + latency + sum(gradients[i] for i in bucket)
    return int(free - made[0])


def _up_to(limit):
    """Fills buckets, from the last layer on, up to `limit` ticks of gradients."""

    def filled(backward, gradients, latency):
        way = [[]]
        for i in reversed(range(len(gradients))):
            if sum(gradients[j] for j in way[-1]) + gradients[i] > limit:
                way.append([])
            way[-1].append(i)
        return [bucket for bucket in way if bucket]

    return filled


def _measure_hide(function):
    way = [[*bucket] for bucket in function(BACKWARD, GRADIENTS, LATENCY)]
    if sorted(i for bucket in way for i in bucket) != [*range(len(BACKWARD))]:
        yield f"{shown(way)} does not have each of {len(BACKWARD)} layers once."
    else:
        yield exposed(way, BACKWARD, GRADIENTS, LATENCY)


# ---- 8: twelve layers, two slots ----


class Tape:
    """A chain of layers that counts forward steps, and keeps few activations.

    `at` is the activation at hand: 0 is the input, which is always there.
    """

    def __init__(self, layers, slots):
        self.slots, self.left = slots, layers
        self.at, self.kept, self.steps = 0, {0}, 0

    def forward(self):
        """From the activation at hand, compute the next."""
        if self.at >= self.left:
            raise ValueError(f"layer {self.at + 1} has gone back already")
        self.at, self.steps = self.at + 1, self.steps + 1

    def keep(self):
        """Put the activation at hand into a slot."""
        if len(self.kept | {self.at}) > self.slots + 1:
            raise ValueError(f"no slot is free for {self.at}: {sorted(self.kept)}")
        self.kept.add(self.at)

    def drop(self, i):
        """Free the slot of activation i."""
        self.kept.remove(i)

    def back_to(self, i):
        """Take activation i, which is kept."""
        if i not in self.kept:
            raise ValueError(f"activation {i} is not kept, only {sorted(self.kept)}")
        self.at = i

    def backward(self):
        """Of the last layer that is left; its input must be at hand."""
        if self.at != self.left - 1:
            raise ValueError(f"layer {self.left} needs {self.left - 1}, not {self.at}")
        self.left -= 1


def undo(tape, layers, slots):
    """What to keep next is looked up in a table of the fewest steps."""

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
    """Keeps these activations on the way, and starts again from the nearest."""

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
    yield f"{tape.left} layers have not gone back." if tape.left else tape.steps


# ---- 9: two stragglers ----


def two_slow(probe, n):
    """Always the group that halves the pairs that are left."""
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
    """One slow device among these."""
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
        if not isinstance(found, (tuple, list)) or tuple(sorted(found)) != pair:
            yield f"Devices {pair[0]} and {pair[1]} are slow; it finds {shown(found)}."
            return
        most = max(most, len(probes))
    yield most


# ---- 10: a schedule in little memory ----

#: Devices, micro-batches, and how many a device holds between its F and its W.
STAGES, BATCHES, HELD = 3, 4, 2


def schedule():
    """Found by a search of all schedules, tick by tick."""
    return [
        row.split() for row in (
            "F0 F1 B0 W0 B1 F2 W1 F3 B2 W2 B3 W3",
            "F0 F1 B0 W0 B1 W1 F2 F3 B2 W2 B3 W3",
            "F0 B0 F1 B1 W0 W1 F2 B2 F3 B3 W2 W3",
        )
    ]  # fmt: skip


def ticks(plan):
    """(when all is done, what each device holds at most): each does its list in order.

    An entry takes a tick. F waits for F of the device before, B for its own F and the
    next device's B, W for its own B. Raises `ValueError` where nothing goes on.
    """
    done, at, held, now = {(-1, "F"): BATCHES, (len(plan), "B"): BATCHES}, {}, {}, 0
    while sum(at.values()) < sum(map(len, plan)):
        ready = []
        for s, row in enumerate(plan):
            kind, m = row[at.get(s, 0)] if at.get(s, 0) < len(row) else " 0"
            needs = {"F": [(s - 1, "F")], "B": [(s, "F"), (s + 1, "B")],
                     "W": [(s, "B")], " ": [(-9, "F")]}[kind]  # fmt: skip
            if all(done.get(other, 0) > int(m) for other in needs):
                ready.append((s, kind))
        if not ready:
            raise ValueError(f"nothing goes on after {now} ticks")
        for s, kind in ready:
            done[s, kind] = done.get((s, kind), 0) + 1
            at[s] = at.get(s, 0) + 1
            holds = done.get((s, "F"), 0) - done.get((s, "W"), 0)
            held[s] = max(held.get(s, 0), holds)
        now += 1
    return now, [held[s] for s in range(len(plan))]


def _in_turn(ahead, join="BWF"):
    """Stage s does `ahead[s]` forwards, then the kinds in `join` in turn."""

    def rows():
        for first in ahead:
            row = [f"F{m}" for m in range(first)]
            for m in range(BATCHES):
                row += [f"{k}{m + first * (k == 'F')}" for k in join]
            yield [entry for entry in row if int(entry[1:]) < BATCHES]

    return lambda: [*rows()]


def _measure_schedule(function):
    plan = [[*row] for row in function()]
    whole = sorted(f"{kind}{m}" for kind in "FBW" for m in range(BATCHES))
    wrong = [s for s, row in enumerate(plan) if sorted(row) != whole]
    if wrong or len(plan) != STAGES:
        yield f"{len(plan)} lists; not all of F0 to W{BATCHES - 1} once in {wrong}."
    else:
        now, held = ticks(plan)
        full = f"The devices hold up to {shown(held)} micro-batches; {HELD} is allowed."
        yield full if max(held) > HELD else now


# ---- 11: ten layers on four devices ----

#: Of each layer: ticks of its forward, gigabytes of its states, and of its activations.
LAYERS = ((4, 1, 1), (1, 3, 1), (4, 3, 2), (2, 4, 1), (3, 1, 3),
          (1, 1, 3), (1, 2, 3), (4, 4, 1), (1, 3, 1), (2, 1, 1))  # fmt: skip
#: Gigabytes of each device.
CAP = 16


def fit(layers, cap):
    """For each stage that there can be, the best choice of what to compute again."""

    @functools.lru_cache(None)
    def best(first, last, held):
        inside = range(first, last)
        ways = [w for r in range(len(inside) + 1)
                for w in itertools.combinations(inside, r)]  # fmt: skip
        costs = [(*stage(layers, inside, way, held), way) for way in ways]
        return min(
            ((t, way) for t, gb, way in costs if gb <= cap), default=(numpy.inf, ())
        )

    plans = []
    for cuts in itertools.combinations(range(1, len(layers)), 3):
        ends = [0, *cuts, len(layers)]
        each = [best(*ends[s : s + 2], 4 - s) for s in range(4)]
        again = [i for _, way in each for i in way]
        plans.append((max(t for t, _ in each), [*cuts], again))
    return min(plans)[1:]


def stage(layers, inside, again, held):
    """(ticks, gigabytes) of a stage with the layers `inside`; some compute `again`.

    Backward takes twice as long as forward. Activations of `held` micro-batches are
    there at a time, but of layers that compute again only the largest, once.
    """
    at = [i for i in inside if i in again]
    took = sum(3 * layers[i][0] for i in inside) + sum(layers[i][0] for i in at)
    kept = held * sum(layers[i][2] for i in inside if i not in again)
    largest = max((layers[i][2] for i in at), default=0)
    return took, sum(layers[i][1] for i in inside) + kept + largest


def _cut_at(cuts, again):
    return lambda layers, cap: (list(cuts), list(again))


def _measure_fit(function):
    cuts, again = function(LAYERS, CAP)
    ends = [0, *cuts, len(LAYERS)]
    if len(cuts) != 3 or sorted({*ends}) != ends:
        yield f"{shown(cuts)} are not three cuts between {len(LAYERS)} layers."
        return
    each = [stage(LAYERS, range(*ends[s : s + 2]), again, 4 - s) for s in range(4)]
    full = [f"device {s} needs {gb} GB" for s, (_, gb) in enumerate(each) if gb > CAP]
    yield f"Of {CAP} GB, {', '.join(full)}." if full else max(t for t, _ in each)


# ---- 12: six devices ----


def six(data, exchange):
    """A ring in each half, one swap between the halves, and the ring again."""
    n = len(data[0]) // 3
    part = [slice(i * n, (i + 1) * n) for i in range(3)]

    def around(shift):
        return exchange({
            (h + i, h + (i + 1) % 3): data[h + i][part[(i + shift) % 3]]
            for h in (0, 3) for i in range(3)
        }).items()  # fmt: skip

    for step in range(2):
        for (i, j), x in around(-step):
            data[j][part[(i - step) % 3]] += x
    whole = {(i, (i + 3) % 6): data[i][part[(i + 1) % 3]] for i in range(6)}
    for (i, j), x in exchange(whole).items():
        data[j][part[(i + 1) % 3]] += x
    for step in range(2):
        for (i, j), x in around(1 - step):
            data[j][part[(i + 1 - step) % 3]] = x


def _ring_of_six(data, exchange):
    part = numpy.split(numpy.arange(len(data[0])), 6)
    for step in range(10):
        messages = {(i, (i + 1) % 6): data[i][part[(i - step) % 6]] for i in range(6)}
        for (i, j), x in exchange(messages).items():
            kept = data[j][part[(i - step) % 6]] if step < 5 else 0
            data[j][part[(i - step) % 6]] = kept + x


def _tree_of_six(data, exchange):
    rows = [[(1, 0), (3, 2), (5, 4)], [(2, 0)], [(4, 0)]]
    for row in rows:
        for (_, j), x in exchange({(i, j): data[i] for i, j in row}).items():
            data[j] += x
    for row in reversed(rows):
        for (_, j), x in exchange({(j, i): data[j] for i, j in row}).items():
            data[j][:] = x


def _measure_six(function):
    wire = Wire()
    data = [numpy.arange(60.0) + 100 * i for i in range(6)]
    function(data, wire.exchange)
    problem = _unlike(data, [6 * numpy.arange(60.0) + 1500] * 6)
    most, right = wire.busiest(), 2 * 5 * 480 // 6
    if not problem and most > right:
        problem = f"The busiest device sends {most} bytes, more than {right}."
    yield problem or wire.rounds


QUESTIONS = {
    1: Puzzle.of(
        "One wait", "a function `epoch_loss(step, batches)`",
        epoch_loss, _measure_epoch_loss, ("Blocking calls", 16, 1, 1, 1), [
            (_reads_each, "Each loss is read as soon as it is asked for."),
            (_reads_each_batch, "That still waits for each batch before the next."),
            ("float(sum(x.as_in_ctx(there) for x in sums))",
             "sum(float(x) for x in sums)",
             "Each device's sum is read by itself: let one device add both."),
            ("float(sum", "(sum", "An array is a promise: the caller has to wait."),
            ("[sum(losses)", "[losses[-1]", "That is the last batch alone."),
            ("for x in sums)", "for x in sums[:1])",
             "That leaves out the second device."),
        ],
    ),
    2: Puzzle.of(
        "Keys over servers", "a function `place(sizes, servers)`",
        place, _measure_place, ("MB on the busiest server", 29, 23, 22, 22), [
            (lambda sizes, servers: [i % servers for i in range(len(sizes))],
             "Keys in turn, whatever their size: so does a rule that knows no sizes."),
            (lambda sizes, servers: _to_the_lightest(sizes, servers, range(len(sizes))),
             "In the given order, a large key comes late and finds no room."),
            (_largest_first,
             "The largest first is a good habit, and not the best for these."),
            (lambda sizes, servers: [0] * len(sizes), "That is a single server."),
            (lambda sizes, servers: [0, 0, 0, 1, 1, 1, 2, 2],
             "Neighbours together: nothing says that the best shares are intervals."),
            (lambda sizes, servers: loads(sizes, place(sizes, servers), servers),
             "These are megabytes. Asked is a server for each key."),
        ],
    ),
    3: Puzzle.of(
        "The wrong line", "a function `mend(lines)`",
        mend, _measure_mend, ("Changed lines", 2, 1, 1, 1), [
            (lambda lines: [*lines[:3], "    for i in range(1, len(data)):",
                            "        data[i] = data[0]", *lines[5:]],
             "One line is wrong: mend it where it is."),
            ("other[:] = data[0]", "other = data[0].copy()",
             "A copy, and still only a new name: what is in the list stays as it was."),
            ("other[:] = data[0]", "data[0] = other", "That loses the sum."),
            ("other[:] = data[0]", "other += data[0]",
             "Each adds its own gradient once more."),
            ("other[:] = data[0]", "other[:] = data[0] / len(data)",
             "Line 12 has divided by all examples already."),
            (lambda lines: [*lines[:17], "    return [copies[0]] * len(copies)"],
             "That hides it: the others' gradients come from stale copies."),
        ],
    ),
    4: Puzzle.of(
        "Four become three", "a function `four_to_three(data, exchange)`",
        four_to_three, _measure_four_to_three, ("Bytes sent", 408, 144, 144, 144), [
            (_by_the_first, "Everything goes through device 0, and most of it back."),
            (_whole_shards, "A neighbour needs the beginning of a shard, not all."),
            ("data[i][i * n :], got[i + 1, i]", "got[i + 1, i], data[i][i * n :]",
             "What comes from the right belongs behind."),
            ("data[i][i * n :], got", "data[i], got",
             "What was sent away is still there."),
            ("data[i][: i * n]", "data[i][: n]",
             "The further right, the more has to move: i parts, not one."),
            ("data[i][: i * n]", "data[i][-i * n :]",
             "The left neighbour needs the beginning, not the end."),
        ],
    ),
    5: Puzzle.of(
        "Two hosts", "a function `spread(data, exchange)`",
        spread, _measure_spread,
        ("Bytes on the busiest slow link", 512, 128, 128, 128), [
            (_by_a_tree, "One link carries the whole array, and three are idle."),
            (_to_each, "The array goes to the other host once for each device."),
            ("(i - step) % 4", "(i + step) % 4",
             "In a ring, each passes on what has just arrived."),
            ("in (0, 4)", "in (4,)", "Devices 1 to 3 have a quarter each."),
            ("range(3)", "range(2)", "A ring of four has three rounds."),
            ("(i, i + 4): i", "(i, 7 - i): i",
             "The ring in the other host expects quarter i on device 4 + i."),
        ],
    ),
    6: Puzzle.of(
        "A loss without its logits", "a function `split_loss(parts, y, gather)`",
        split_loss, _measure_split_loss, ("Numbers from each device", 48, 12, 7, 6), [
            (_gathers_all, "These are the logits themselves."),
            (_three_a_row,
             "The largest and the sum of a row can be one number on its way."),
            ("part.max(axis=1)", "0 * part[:, 0]",
             "exp of 1,500 is infinite: take the largest off first."),
            ("top + numpy.log", "numpy.log", "What was taken off must come back."),
            (" if c // width == i", "",
             "Only one device has the column of a row's label."),
            (" / len(y)", "", "That is the sum over the rows, and not the mean."),
            ("numpy.logaddexp.reduce(gather(own))", "sum(gather(own))",
             "Logarithms of sums add up by logaddexp."),
        ],
    ),
    7: Puzzle.of(
        "Hide this exchange", "a function `hide(backward, gradients, latency)`",
        hide, _measure_hide, ("Ticks after backward", 29, 16, 14, 14), [
            (_up_to(99), "One bucket begins when backward is over."),
            (_up_to(0), "A bucket for each layer pays the latency eight times."),
            (_up_to(7), "Of about one size: the last need not be like the first."),
            (lambda *given: [[7, 6, 5, 4, 3, 2], [1, 0]],
             "The first message begins late, and then the link has no pause."),
            (lambda *given: [[0, 1, 2], [3, 4, 5], [6, 7]],
             "Backward begins at the last layer: the first bucket waits for all."),
            ("range(last - 1, -1, -1)", "range(last - 1, 0, -1)",
             "Layer 0 has a gradient, too."),
        ],
    ),
    8: Puzzle.of(
        "Twelve layers, two slots", "a function `undo(tape, layers, slots)`",
        undo, _measure_undo, ("Forward steps", 66, 22, 21, 21), [
            (_from_kept(), "Nothing is kept: each layer begins at the input again."),
            (_from_kept(4, 8), "Equal parts, and a slot that is free stays empty."),
            (_from_kept(6, 9), "Halves, and a slot that is free stays empty."),
            (_from_kept(3, 6, 9), "Three slots would do it."),
            ("                tape.drop(first + ahead)\n", "",
             "What has gone back is still in its slot."),
            ("keep = range(1, n)", "keep = [1]",
             "Slots at the very beginning save little."),
            ("while tape.left > first", "if tape.left > first",
             "The layers before the kept one are left."),
        ],
    ),
    9: Puzzle.of(
        "Two stragglers", "a function `two_slow(probe, n)`",
        two_slow, _measure_two_slow, ("Probes at worst", 9, 7, 6, 6), [
            (_one_by_one, "One device at a time: a group says more."),
            (_halves_twice,
             "The second search forgets what the first said of both."),
            (_halves_once, "The second need not be the next."),
            (lambda probe, n: _halves(probe, [*range(n)]), "There are two of them."),
            ("slow != group.isdisjoint(pair)", "slow == {*pair}.issubset(group)",
             "A group is slow when one of the two is in it."),
            ("return left[0]", "return left", "Asked are two devices, not pairs."),
        ],
    ),
    10: Puzzle.of(
        "A schedule in little memory", "a function `schedule()`",
        schedule, _measure_schedule, ("Ticks", 28, 18, 17, 17), [
            (_in_turn((1, 1, 1)), "One micro-batch at a time through all devices."),
            (_in_turn((2, 2, 1)), "W right behind B makes the device before wait."),
            (_in_turn((3, 2, 1)), "1F1B needs more memory on the first device."),
            (_in_turn((4, 4, 4)), "GPipe holds all of them."),
            (_in_turn((2, 2, 2), "WBF"), "W of a micro-batch comes behind its B."),
            (_in_turn((2, 2, 2), "BF"), "Weights need their gradients, too."),
        ],
    ),
    11: Puzzle.of(
        "Ten layers on four devices", "a function `fit(layers, cap)`",
        fit, _measure_fit, ("Ticks of the slowest stage", 28, 22, 21, 21), [
            (_cut_at((1, 3, 7), range(10)),
             "Equal times, and all computed again: it fits, and costs a third more."),
            (_cut_at((1, 3, 7), ()), "The cut of equal times does not fit as it is."),
            (_cut_at((1, 3, 7), (4, 5, 6)),
             "As little again as fits this cut: another cut may need less."),
            (_cut_at((2, 5, 8), ()), "Equal numbers of layers do not fit."),
            (_cut_at((2, 4, 6), ()), "All that can be done without computing again."),
            (_cut_at((2, 4, 10), ()), "The last stage is empty."),
        ],
    ),
    12: Puzzle.of(
        "Six devices", "a function `six(data, exchange)`",
        six, _measure_six, ("Rounds", 10, 6, 5, 3), [
            (_ring_of_six, "The ring: few bytes, many rounds."),
            (_tree_of_six, "The tree: few rounds, whole arrays."),
            (folded, "Two devices are folded, with whole arrays."),
            ("(i, (i + 3) % 6)", "(i, 5 - i)",
             "Swap with who has the other half's sum of the same part."),
            ("part[(i + 1) % 3]] += x", "part[(i + 1) % 3]] = x",
             "The swap replaces: it has to add."),
            ("around(-step)", "around(step)",
             "In a ring, each passes on what has just arrived."),
            ("around(1 - step)", "around(-step)",
             "After two rounds, the sum of a half is at the next device."),
        ],
    ),
}
