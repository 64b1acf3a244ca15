"""Exercises of the chapter *Halving and doubling*."""

from ..counts import ROUNDS, SENT, counted
from ..question import Question, Task, compared
from .allreduce import around, run_sum, tree


def partners(i, k):
    """With whom device i of k, a power of two, swaps while it halves."""
    return [i ^ 2**b for b in reversed(range(k.bit_length() - 1))]


def best(k, nbytes, alpha, beta):
    """Of tree, ring, halving and double tree, the one that takes least."""
    down, up = k.bit_length() - 1, (k - 1).bit_length()
    arrays = 2 * (1 - 1 / 2**down) + 2 * (up > down)
    took = {
        "tree": 2 * up * (alpha + nbytes * beta),
        "ring": 2 * (k - 1) * (alpha + nbytes / k * beta),
        "halving": 2 * up * alpha + arrays * nbytes * beta,
        "double tree": min(
            4 * (c + down - 1) * (alpha + nbytes / (2 * c) * beta)
            for c in (2**e for e in range(14))
        ),
    }
    return min(took, key=took.get)


def folded(data, exchange):
    """Halving and doubling; the devices beyond a power of two are folded."""
    p = 2 ** (len(data).bit_length() - 1)
    extra = range(p, len(data))
    for (_, j), x in exchange({(i, i - p): data[i].copy() for i in extra}).items():
        data[j] += x
    low, size, d = [0] * p, len(data[0]), p // 2
    while d:
        size //= 2
        keep = [low[i] + (size if i & d else 0) for i in range(p)]
        halves = {(i, i ^ d): data[i][keep[i ^ d] :][:size].copy() for i in range(p)}
        for (_, j), half in exchange(halves).items():
            data[j][keep[j] :][:size] += half
        low, d = keep, d // 2
    d = 1
    while d < p:
        parts = {(i, i ^ d): data[i][low[i] :][:size].copy() for i in range(p)}
        for (i, j), part in exchange(parts).items():
            data[j][low[i] :][:size] = part
        low, size, d = [min(low[i], low[i ^ d]) for i in range(p)], 2 * size, 2 * d
    for (_, j), x in exchange({(i - p, i): data[i - p].copy() for i in extra}).items():
        data[j][:] = x


QUESTIONS = {
    1: Question(
        "the number of rounds",
        24,
        [
            (22, "3,000 is no power of two: the devices beyond 2,048 are folded."),
            (12, "That is one way. The sum has to go back."),
            (11, "That is the halving of 2,048. Then they double, and 952 are left."),
            (5998, "That is the ring."),
        ],
    ),
    2: Task(
        "a function `partners(i, k)`",
        partners,
        [
            ("reversed(range(k.bit_length() - 1))", "range(k.bit_length() - 1)",
             "That is the order of doubling. Halving begins with the farthest."),
            ("i ^ 2**b", "(i + 2**b) % k",
             "A swap goes both ways: whom you send to has to send to you."),
            ("i ^ 2**b", "i + 2**b",
             "Half of the devices swap with one before them, and nobody with one "
             + "beyond the end."),
            ("i ^ 2**b", "i ^ b",
             "That is the number of the bit. The distance is a power of two."),
            ("k.bit_length() - 1)", "k.bit_length())",
             "The farthest partner is half of the devices away: that is a round too "
             + "many."),
            ("k.bit_length() - 1)", "k.bit_length() - 2)",
             "A round is missing: log₂ of the number of devices are needed."),
            ("reversed(range(k.bit_length() - 1))",
             "reversed(range(1, k.bit_length() - 1))",
             "The last round, with the neighbour, is missing."),
        ],
        judge=compared(partners, [(0, 1), (0, 2), (1, 2), (1, 4), (5, 8), (10, 16)]),
    ),
    3: Task(
        "a function `best(k, nbytes, alpha, beta)`",
        best,
        [
            (lambda k, nbytes, alpha, beta: "ring",
             "A ring has few bytes, and a round for each device, twice: with many "
             + "devices that is what it takes."),
            ("+ 2 * (up > down)", "",
             "Where the devices are no power of two, the fold sends an array there "
             + "and one back."),
            ("min(took", "max(took", "That is the one that takes most."),
            ("2 * up * (alpha + nbytes * beta)", "up * (alpha + nbytes * beta)",
             "The tree goes up, and then down again."),
            ("(k - 1) * (alpha + nbytes / k * beta)",
             "(k - 1) * (alpha + nbytes * beta)",
             "A message of the ring is a chunk, and not the array."),
            ("for e in range(14)", "for e in range(1)",
             "One chunk makes the double tree wait for whole arrays. Try more chunks."),
        ],
        judge=compared(best, [
            (5, 4096, 1e-6, 1e-9), (4, 4e6, 1e-5, 1e-9),
            (3, 1e6, 1e-6, 1e-9), (8, 1e5, 1e-5, 1e-9), (6, 1e6, 1e-6, 1e-9),
            (1000, 1e3, 1e-5, 1e-10), (1024, 1e8, 1e-5, 1e-10),
            (1000, 1e8, 1e-5, 1e-10), (1000, 1e10, 1e-5, 1e-10),
        ]),
    ),
    4: Task(
        "a function `folded(data, exchange)`",
        folded,
        [
            (tree,
             "That is a tree, and whoever has two children sends two whole arrays "
             + "down and one up: halve the arrays."),
            (around,
             "A ring of whole arrays takes a round for each other device. Send halves "
             + "of what is left."),
            ("2 ** (len(data).bit_length() - 1)", "len(data)",
             "Halves need partners for all: where the devices are no power of two, "
             + "those beyond it are folded first."),
            ("extra = range(p, len(data))", "extra = range(0)",
             "The devices beyond the power of two take no part: their numbers are "
             + "missing."),
            ("data[j][keep[j] :][:size] += half", "data[j][keep[j] :][:size] = half",
             "While they halve, what arrives is added to one's own part. This "
             + "overwrites it."),
            ("data[j][low[i] :][:size] = part", "data[j][low[i] :][:size] += part",
             "While they double, parts arrive that are complete. Adding counts what "
             + "was there before once more."),
            ("    data[j][:] = x", "    data[j] += x",
             "The folded devices get the whole sum back. Adding counts their own "
             + "numbers twice."),
            ("range(p)}\n        for (_, j), half",
             "range(p) if i & d}\n        for (_, j), half",
             "In a round of halving both partners send: each the half that the other "
             + "keeps."),
        ],
        judge=counted(folded, run_sum, "{} devices, arrays of {:,}",
                      [(1, 1), (2, 2), (3, 6), (4, 4), (5, 12), (6, 40_000)],
                      about=[ROUNDS, SENT]),
    ),
}
