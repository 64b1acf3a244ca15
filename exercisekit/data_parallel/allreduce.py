"""Exercises of the chapter *Allreduce*."""

import numpy

from ..counts import ROUNDS, counted
from ..question import Question, Task


def broadcast(values, exchange):
    k, have = len(values), 1
    while have < k:  # devices 0 … have - 1 have the value
        messages = {(i, i + have): values[i] for i in range(min(have, k - have))}
        for (_, j), value in exchange(messages).items():
            values[j] = value
        have *= 2


def _run_broadcast(function, counts, k):
    values = [0] + [None] * (k - 1)  # 0 is a value, too

    def exchange(messages):
        if missing := {i for pair in messages for i in pair} - {*range(k)}:
            raise ValueError(f"there is no device {min(missing)}")
        return counts.exchange(messages)

    function(values, exchange)
    return values


def _from_the_first(values, exchange):
    for j in range(1, len(values)):
        values[j] = exchange({(0, j): values[0]})[0, j]


def _beyond_the_end(values, exchange):
    have = 1
    while have < len(values):
        messages = {(i, i + have): values[i] for i in range(have)}
        for (_, j), value in exchange(messages).items():
            values[j] = value
        have *= 2


def swap_whole(data, exchange):
    distance = 1
    while distance < len(data):
        messages = {(i, i ^ distance): x.copy() for i, x in enumerate(data)}
        for (_, j), x in exchange(messages).items():
            data[j] += x
        distance *= 2


def run_sum(function, counts, k, size):
    # Whole numbers, too large for single precision.
    arrays = [numpy.arange(1, size + 1) * 10.0 ** (i % 9) for i in range(k)]
    with counts.memory(unit=8 * size):
        function(list(arrays), counts.exchange)
    return {f"device {i}": x for i, x in enumerate(arrays)}


def _sends_no_copies(data, exchange):
    distance = 1
    while distance < len(data):
        messages = {(i, i ^ distance): x for i, x in enumerate(data)}
        for (_, j), x in exchange(messages).items():
            data[j] += x
        distance *= 2


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
            (7, "That is for the reduce-scatter. The allgather needs the same number."),
            (16, "A chunk is complete after k - 1 rounds, not after k."),
            (6, "That is the number of rounds of the tree."),
            (8, "There are two halves, each of k - 1 rounds."),
        ],
    ),
    2: Question(
        "the number of bytes",
        22 * 50e-6 / (6.125 * 1e-9),
        [
            (26 * 50e-6 / (2.125 * 1e-9), "The tree also sends the sum back."),
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
             "Only the first device sends. A device that has the value can send it "
             + "on, in the same round."),
            (_beyond_the_end,
             "In the last round fewer devices need the value than have it: this "
             + "message goes to a device that does not exist."),
            (lambda values, exchange: broadcast([*values], exchange),
             "`exchange` only delivers. Store what arrives in `values`."),
        ],
        judge=counted(broadcast, _run_broadcast, "{} devices",
                      [(1,), (2,), (3,), (6,), (8,)], about=[ROUNDS]),
    ),
    4: Task(
        "a function `swap_whole(data, exchange)`",
        swap_whole,
        [
            (_sends_no_copies,
             "Send copies: without them a device receives an array that its partner "
             + "has already changed in this round."),
            (lambda data, exchange: swap_whole([x.copy() for x in data], exchange),
             "The device's own array is as it was. Add what arrives into it, in place: "
             + "`data[j] += x`. `data[j] + x` alone makes a new array."),
            (tree,
             "That is a tree, up and down again. Both partners of a pair can send in "
             + "the same round."),
        ],
        judge=counted(swap_whole, run_sum, "{} devices, arrays of {:,}",
                      [(1, 3), (2, 1), (4, 5), (8, 40_000)], about=[ROUNDS]),
    ),
}
