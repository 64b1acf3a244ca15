"""Exercises of the chapter *Allreduce*."""

import numpy

from ..counts import ROUNDS, counted
from ..question import Question, Task


def broadcast(values, exchange):
    """In each round, who has the value sends it on."""
    k, have = len(values), 1
    while have < k:
        pairs = [(i, i + have) for i in range(min(have, k - have))]
        for (_, j), value in exchange({(i, j): values[i] for i, j in pairs}).items():
            values[j] = value
        have *= 2


def _run_broadcast(function, counts, k):
    values = [7] + [None] * (k - 1)
    function(values, counts.exchange)
    return values


def _from_the_first(values, exchange):
    for j in range(1, len(values)):
        values[j] = exchange({(0, j): values[0]})[0, j]


def _down_a_line(values, exchange):
    for j in range(1, len(values)):
        values[j] = exchange({(j - 1, j): values[j - 1]})[j - 1, j]


def _at_once(values, exchange):
    for (_, j), value in exchange(
        {(0, j): values[0] for j in range(1, len(values))}
    ).items():
        values[j] = value


def swap_whole(data, exchange):
    """Recursive doubling: whole arrays, with ever farther partners; 2ⁿ devices."""
    distance = 1
    while distance < len(data):
        pairs = {(i, i ^ distance): x.copy() for i, x in enumerate(data)}
        for (_, j), x in exchange(pairs).items():
            data[j] += x
        distance *= 2


def around(data, exchange):
    k = len(data)
    arrived = {((i - 1) % k, i): data[i - 1].copy() for i in range(k)}
    for _ in range(k - 1):
        exchange(arrived)
        for (_, j), x in arrived.items():
            data[j] += x
        arrived = {(j, (j + 1) % k): x for (_, j), x in arrived.items()}


def run_sum(function, counts, k, size):
    # Whole numbers, too large for single precision.
    arrays = [numpy.arange(1, size + 1) * 10.0 ** (i % 9) for i in range(k)]
    with counts.memory(unit=8 * size):
        function(list(arrays), counts.exchange)
    return {f"device {i}": x for i, x in enumerate(arrays)}


def tree(data, exchange):
    k, d, rows = len(data), 1, []
    while d < k:
        rows.append([(i + d, i) for i in range(0, k - d, 2 * d)])
        d *= 2
    for row in rows:
        for (_, j), x in exchange({(i, j): data[i].copy() for i, j in row}).items():
            data[j] += x
    for row in reversed(rows):
        for (_, j), x in exchange({(j, i): data[j].copy() for i, j in row}).items():
            data[j][:] = x


QUESTIONS = {
    1: Question(
        "the number of rounds",
        14,
        [
            (7, "That is the reduce-scatter. The allgather takes as many again."),
            (16, "A chunk is complete after k - 1 rounds, not after k."),
            (6, "That is the tree."),
            (8, "It takes two halves, each of k - 1 rounds."),
        ],
    ),
    2: Question(
        "a number of bytes",
        22 * 50e-6 / (6.125 * 1e-9),
        [
            (26 * 50e-6 / (2.125 * 1e-9), "The tree's messages also run backwards."),
            (7 * 50e-6 / (7.0625 * 1e-9), "The ring has two halves of 15 rounds."),
            (179.6, "That is in kilobytes."),
        ],
        tolerance=0.01,
    ),
    3: Task(
        "a function `broadcast(values, exchange)`",
        broadcast,
        [
            (_from_the_first,
             "Only the first device sends. Who has the value can send it on, in the "
             + "same round."),
            (_down_a_line,
             "Each device waits for the one before it, as in a line: after a round, "
             + "twice as many could have the value."),
            (_at_once,
             "In a round a device sends at most one message: who else has the value?"),
            ("min(have, k - have)", "have",
             "In the last round fewer devices are left than could send: that message "
             + "goes beyond the end."),
            ("while have < k", "while 2 * have <= k",
             "That ends too early where the number of devices is no power of two."),
            ("(i, i + have)", "(i, i + have - 1)",
             "That is one too few: device 0 would send the first message to itself."),
            ("values[j] = value", "pass",
             "Exchange only delivers: store what arrives, or nobody has it."),
        ],
        judge=counted(broadcast, _run_broadcast, "{} devices",
                      [(1,), (2,), (3,), (5,), (8,)], about=[ROUNDS]),
    ),
    4: Task(
        "a function `swap_whole(data, exchange)`",
        swap_whole,
        [
            ("x.copy()", "x",
             "A device that sends its array, and not a copy, sends what its partner "
             + "has changed in the same round."),
            ("data[j] += x", "data[j] = data[j] + x",
             "That makes a new array, and leaves the device's own as it was: the sum "
             + "has to be in place."),
            ("data[j] += x", "data[j][:] = x",
             "What arrives is added to what is there. This overwrites it."),
            ("x.copy()", "x.astype('float32')",
             "Single precision on the way: the large numbers lose their last digits."),
            ("< len(data)", "< len(data) // 2",
             "A round is missing: the farthest partners, half of the devices apart, "
             + "never meet."),
            ("distance *= 2", "distance += 1",
             "The distances double from round to round: with others, some numbers "
             + "are added twice and some never."),
            ("data[j] += x", "data[j] += x; data[j] /= 2",
             "That is a mean. The sum is asked for, as the gradients need it."),
            (around,
             "A ring of whole arrays sends on what arrived. Send all that you have "
             + "by now: in each round it is a sum of twice as many."),
            (tree,
             "That is a tree, up and down again. Both partners of a pair can send in "
             + "the same round."),
        ],
        judge=counted(swap_whole, run_sum, "{} devices, arrays of {:,}",
                      [(1, 3), (2, 1), (4, 5), (8, 40_000)], about=[ROUNDS]),
    ),
}
