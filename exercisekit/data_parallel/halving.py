"""Exercises of the chapter *Halving and doubling*."""

from d2l_ext.data_parallel import costs

from ..counts import ROUNDS, SENT, counted
from ..question import Question, Task, compared
from .allreduce import run_sum, tree


def partners(i, k):
    found, distance = [], k // 2
    while distance:
        found.append(i ^ distance)
        distance //= 2
    return found


def best(k, nbytes, alpha, beta):
    took = {way: costs.seconds(way, k, nbytes, alpha, beta)
            for way in ("tree", "ring", "halving")}
    took["double tree"] = min(
        costs.seconds("double tree", k, nbytes, alpha, beta, chunks=2**e)
        for e in range(14))
    return min(took, key=took.get)


def _one_chunk(k, nbytes, alpha, beta):
    return min(("tree", "ring", "halving", "double tree"),
               key=lambda way: costs.seconds(way, k, nbytes, alpha, beta))


def folded(data, exchange):
    p = 2 ** (len(data).bit_length() - 1)
    extra = range(p, len(data))
    for (_, j), x in exchange({(i, i - p): data[i].copy() for i in extra}).items():
        data[j] += x

    begin, size, distance = [0] * p, len(data[0]), p // 2
    while distance:  # halve: each adds what arrives to the part that it keeps
        size //= 2
        begin = [b + (size if i & distance else 0) for i, b in enumerate(begin)]
        halves = {}
        for i in range(p):
            j = i ^ distance
            halves[i, j] = data[i][begin[j] : begin[j] + size].copy()
        for (_, j), half in exchange(halves).items():
            data[j][begin[j] : begin[j] + size] += half
        distance //= 2

    distance = 1
    while distance < p:  # double: each copies what arrives
        parts = {(i, i ^ distance): data[i][b : b + size].copy()
                 for i, b in enumerate(begin)}
        for (i, j), part in exchange(parts).items():
            data[j][begin[i] : begin[i] + size] = part
        begin = [min(b, begin[i ^ distance]) for i, b in enumerate(begin)]
        size, distance = 2 * size, 2 * distance

    for (_, j), x in exchange({(i - p, i): data[i - p].copy() for i in extra}).items():
        data[j][:] = x


def _first_p(data):
    return data[: 2 ** (len(data).bit_length() - 1)]


def _leaves_out_the_others(data, exchange):
    folded(_first_p(data), exchange)


def _sends_nothing_back(data, exchange):
    first = _first_p(data)
    messages = {(len(first) + i, i): x for i, x in enumerate(data[len(first) :])}
    for (_, j), x in exchange(messages).items():
        data[j] += x
    folded(first, exchange)


QUESTIONS = {
    1: Question(
        "the number of rounds",
        24,
        [
            (22, "3,000 is not a power of two: the devices beyond 2,048 are folded."),
            (12, "That is one direction. The sum has to go back."),
            (11, "That is for the halving on 2,048 devices. Then they double, and the "
                 + "other 952 are folded."),
            (5998, "That is for the ring."),
        ],
    ),
    2: Task(
        "a function `partners(i, k)`",
        partners,
        [
            (lambda i, k: partners(i, k)[::-1],
             "That is the order of doubling. Here, halving begins with the farthest "
             + "partner."),
            (lambda i, k: [(i + (j ^ i)) % k for j in partners(i, k)],
             "A swap goes both ways: the device to which you send has to send to you."),
            (lambda i, k: [i ^ b for b in reversed(range(k.bit_length() - 1))],
             "That is the number of the bit. The distance is a power of two."),
        ],
        judge=compared(partners, [(0, 1), (0, 2), (1, 2), (1, 4), (5, 8), (10, 16)]),
    ),
    3: Task(
        "a function `best(k, nbytes, alpha, beta)`",
        best,
        [
            (lambda k, nbytes, alpha, beta: "ring",
             "On four devices, halving sends as many bytes as the ring, in fewer "
             + "rounds."),
            (_one_chunk,
             "The double tree is faster here with the right number of chunks. With "
             + "one, each link waits for half an array, and each further chunk costs "
             + "rounds. Try each power of two."),
        ],
        judge=compared(best, [
            (5, 4096, 1e-6, 1e-9), (4, 4e6, 1e-5, 1e-9),
            (3, 1e6, 1e-6, 1e-9), (8, 1e5, 1e-5, 1e-9), (6, 1e6, 1e-6, 1e-9),
            (1000, 1e3, 1e-5, 1e-10), (1024, 1e8, 1e-5, 1e-10),
            (1000, 1e8, 1e-5, 1e-10), (1000, 1e10, 1e-5, 1e-10),
            (1000, 8e6, 1e-5, 1e-10), (37000, 9e11, 1e-5, 1e-10),
        ]),
    ),
    4: Task(
        "a function `folded(data, exchange)`",
        folded,
        [
            (tree,
             "That is a tree: on six devices, one device sends three whole arrays. "
             + "Halve the arrays."),
            (_leaves_out_the_others,
             "The devices beyond the power of two take no part, so their numbers are "
             + "missing."),
            (_sends_nothing_back, "The folded devices do not receive the sum."),
        ],
        judge=counted(folded, run_sum, "{} devices, arrays of {:,}",
                      [(1, 1), (2, 2), (3, 6), (4, 4), (5, 12), (6, 40_000)],
                      about=[ROUNDS, SENT]),
    ),
}
