"""Puzzles on messages: bytes, numbers, rounds."""

import numpy

from ...counts import from_sent
from ...data_parallel.allreduce import tree
from ...data_parallel.halving import folded
from ...question import shown
from ...tensor_parallel.transformer import log_sum_exp
from .puzzle import Puzzle


class Wire:
    """Delivers copies of arrays; counts rounds, and bytes per pair of devices."""

    def __init__(self):
        self.rounds, self.sent = 0, {}

    def exchange(self, messages):
        """Deliver `messages`, `{(from, to): array}`; a device sends at most one, and
        receives at most one.
        """
        for end in zip(*messages):
            if len({*end}) < len(messages):
                raise ValueError(
                    "a device may send only one message and receive only one in a "
                    f"round, not {sorted(messages)}")
        self.rounds += 1
        for pair, x in messages.items():
            self.sent[pair] = self.sent.get(pair, 0) + x.nbytes
        return {pair: x.copy() for pair, x in messages.items()}

    def busiest(self):
        """Return the bytes sent by the device that sends the most."""
        return max(self._by_device(end=0).values(), default=0)

    def busiest_between(self, host):
        """Return the bytes in one direction on the busiest link of a device to other
        hosts.

        `host(i)` is device i's host.
        """
        ends = [self._by_device(end, lambda i, j: host(i) != host(j)) for end in (0, 1)]
        return max((n for end in ends for n in end.values()), default=0)

    def _by_device(self, end, counts=lambda i, j: True):
        found = {}
        for pair, nbytes in self.sent.items():
            found[pair[end]] = found.get(pair[end], 0) + nbytes * counts(*pair)
        return found


def _unlike(found, right):
    """Return the first difference from the right arrays on any device, or ""."""
    for i, (x, y) in enumerate(zip(found, right)):
        if numpy.shape(x) != numpy.shape(y):
            if numpy.size(x) != len(y):
                return f"Device {i} ends with {numpy.size(x)} numbers, not {len(y)}."
            return f"Device {i}'s array has the shape {numpy.shape(x)}, not {y.shape}."
        if not numpy.allclose(x, y):
            at = int(numpy.argmax(~numpy.isclose(x, y)))
            return (f"On device {i}, number {at} is {shown(float(x[at]))}, not "
                    f"{shown(float(y[at]))}.")
    return ""


def four_to_three(data, exchange):
    """Give each device the beginning of its right neighbour's numbers."""
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


def _from_the_right(sent, joined):
    def moved(data, exchange):
        n = len(data[0]) // 3
        got = exchange({(i, i - 1): sent(data[i], i, n) for i in (1, 2, 3)})
        data[:3] = [numpy.concatenate(joined(data[i][i * n :], got[i + 1, i]))
                    for i in range(3)]

    return moved


def _behind(kept, got):
    return [kept, got]


def _measure_four_to_three(function):
    wire = Wire()
    data = [*numpy.arange(36.0).reshape(4, 9)]
    function(data, wire.exchange)
    problem = _unlike(data[:3], numpy.arange(36.0).reshape(3, 12))
    yield problem or sum(wire.sent.values())


def spread(data, exchange):
    """Give each device of host 0 a quarter, use all four links, then two rings."""
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


def _without_rings(data, exchange):
    n = len(data[0]) // 4
    for i in range(4):
        part = slice(i * n, (i + 1) * n)
        if i:
            data[i][part] = exchange({(0, i): data[0][part]})[0, i]
        data[i + 4][part] = exchange({(i, i + 4): data[i][part]})[i, i + 4]


def _measure_spread(function):
    wire = Wire()
    data = [numpy.arange(64.0) + 1, *numpy.zeros((7, 64))]
    function(data, wire.exchange)
    problem = _unlike(data, [numpy.arange(64.0) + 1] * 8)
    yield problem or wire.busiest_between(lambda i: i // 4)


def split_loss(parts, y, gather):
    """Add up each loss on the device that has the correct word; send nothing for it."""
    width, devices, rows = parts[0].shape[1], range(len(parts)), range(len(y))
    owner = y // width
    sums = []  # per device and row: the log of its own sum of exponentials
    for part in parts:
        top = part.max(axis=1)
        sums.append(top + numpy.log(numpy.exp(part - top[:, None]).sum(axis=1)))
    others = [[r for r in rows if owner[r] != i] for i in devices]
    arrived = gather([sums[i][others[i]] for i in devices])
    known = [dict(zip(others[i], arrived[i])) for i in devices]

    def loss(r):
        i = owner[r]
        parts_of_sum = [known[j][r] for j in devices if j != i] + [sums[i][r]]
        return numpy.logaddexp.reduce(parts_of_sum) - parts[i][r, y[r] % width]

    losses = gather([sum(loss(r) for r in rows if owner[r] == i) for i in devices])
    return sum(losses) / len(y)


def _one_for_each_row(parts, y, gather):
    return _loss_from([log_sum_exp(part) for part in parts], parts, y, gather)


def _without_the_largest(parts, y, gather):
    own = [numpy.log(numpy.exp(part).sum(axis=1)) for part in parts]
    return _loss_from(own, parts, y, gather)


def _forgets_the_largest(parts, y, gather):
    own = [
        numpy.log(numpy.exp(part - part.max(axis=1)[:, None]).sum(axis=1))
        for part in parts
    ]
    return _loss_from(own, parts, y, gather)


def _loss_from(own, parts, y, gather):
    whole, width = numpy.logaddexp.reduce(gather(own)), parts[0].shape[1]
    sums = [
        sum(whole[r] - part[r, c % width] for r, c in enumerate(y) if c // width == i)
        for i, part in enumerate(parts)
    ]
    return sum(gather(sums)) / len(y)


def _gathers_all(parts, y, gather):
    whole = numpy.concatenate(gather(parts), axis=1)
    return (log_sum_exp(whole) - whole[numpy.arange(len(y)), y]).mean()


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
        copies = [numpy.array(value) for value in values]
        sent.append(max(map(numpy.size, copies)))
        return copies

    found, is_known = from_sent(
        lambda parts, gather: float(function(parts, y.copy(), gather)),
        numpy.split(logits.copy(), 4, axis=1), gather)
    right = (log_sum_exp(logits) - logits[range(6), y]).mean()
    if not numpy.isclose(found, right):
        yield f"The loss is {right:.4f}, not {found:.4f}."
    elif not is_known:
        yield "The loss depends on logits of other devices that were not sent."
    else:
        yield sum(sent)


def six(data, exchange):
    """Run a ring in each half, one swap between the halves, and the rings again."""
    n = len(data[0]) // 3
    part = [slice(i * n, (i + 1) * n) for i in range(3)]

    def around(shift):
        return exchange({
            (h + i, h + (i + 1) % 3): data[h + i][part[(i + shift) % 3]]
            for h in (0, 3) for i in range(3)
        }).items()

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
    4: Puzzle.of(
        "Four become three", "a function `four_to_three(data, exchange)`",
        four_to_three, _measure_four_to_three, ("Bytes sent", 408, 144, 144, 144), [
            (_by_the_first, "Everything goes to device 0, and most of it back again."),
            (_whole_shards,
             "A neighbour needs the beginning of a shard, not all of it."),
            (_from_the_right(lambda mine, i, n: mine[: i * n],
                             lambda kept, got: [got, kept]),
             "The numbers from the right neighbour come last."),
            (_from_the_right(lambda mine, i, n: mine[:n], _behind),
             "Further to the right, more has to move: i parts, not one."),
            (_from_the_right(lambda mine, i, n: mine[-i * n :], _behind),
             "The left neighbour needs the beginning, not the end."),
        ],
    ),
    5: Puzzle.of(
        "Two hosts", "a function `spread(data, exchange)`",
        spread, _measure_spread,
        ("Bytes on the busiest slow link", 512, 128, 128, 128), [
            (_by_a_tree, "A slow link carries the whole array."),
            (_to_each, "The array goes to the other host once per device."),
            (_without_rings, "Each device needs all four quarters, in `data` itself."),
        ],
    ),
    6: Puzzle.of(
        "A loss without its logits", "a function `split_loss(parts, y, gather)`",
        split_loss, _measure_split_loss, ("Numbers from each device", 48, 12, 6, 6), [
            (_gathers_all, "These are the logits themselves."),
            (_three_a_row,
             "A row's largest logit and its sum can be sent as one number."),
            (_without_the_largest,
             "exp of 1,500 is infinite: subtract the largest logit first."),
            (_forgets_the_largest, "Add again what you subtracted."),
            (lambda parts, y, gather: len(y) * split_loss(parts, y, gather),
             "That is the sum over the rows, not the mean."),
        ],
    ),
    12: Puzzle.of(
        "Six devices", "a function `six(data, exchange)`",
        six, _measure_six, ("Rounds", 10, 6, 5, 5), [
            (_ring_of_six, "This sends few bytes, but in many rounds."),
            (tree, "Few rounds, but of whole arrays: send parts of them."),
            (folded, "Folding two devices sends whole arrays."),
        ],
    ),
}
