"""Halving and doubling: the ring's bytes, in a logarithm of rounds.

In the first round a device swaps halves of the array with a partner, in the next
quarters, then eighths: each sends what the other keeps. Then the same way back.
"""

from ..checks import whole_number
from .allreduce import cut
from .traffic import checked, cuts, rounds, send


@checked
def allreduce_halving(data, pieces=1):
    """The same as `allreduce`, with the ring's bytes in 2·log₂ k rounds.

        allreduce_halving(data, pieces=32)

    If k is no power of two, the devices beyond p, the largest one, give their whole
    array to one of the first p and get the sum back: two rounds more, in which those
    send and receive an array more.
    `pieces`: cut the array into so many, default 1, and sum piece by piece, each in
    rounds of its own. A piece that fits into a cache is read from memory once.
    `data` and errors: as in `allreduce`; `ValueError` for fewer pieces than one.
    Source: Thakur, Rabenseifner and Gropp (2005). Developed in the chapter *Halving
    and doubling*.
    """
    whole_number("pieces", pieces)
    for piece in zip(*(cut(x, pieces) for x in data)):
        fold(piece)


def fold(data):
    """Sum the arrays of k devices, by way of the first p, a power of two."""
    p = 2 ** (len(data).bit_length() - 1)
    own, extra = data[:p], data[p:]
    for others in rounds([extra] if extra else []):
        for x, other in zip(own, others):
            x += send(other, x.ctx)
    if p > 1:
        double(halve(own), own)
    for others in rounds([extra] if extra else []):
        for x, other in zip(own, others):
            send(x, other)


def partners(p):
    """With whom each of p devices swaps in the halving, round by round.

    p = 8       0   1   2   3   4   5   6   7    device
    round 1     4   5   6   7   0   1   2   3    a half of the array
    round 2     2   3   0   1   6   7   4   5    a quarter
    round 3     1   0   3   2   5   4   7   6    an eighth
    """
    return [[i ^ 2**b for i in range(p)] for b in reversed(range(p.bit_length() - 1))]


def halve(data):
    """Leave device i of p, a power of two, with chunk i of the sum; return all p.

    `data` is only read: a partial sum travels in the array in which a half arrives.
    """
    p, partial = len(data), [x.reshape_view(-1) for x in data]
    edges = cuts(data[0].size, p)
    for other in rounds(partners(p)):
        d = other[0]  # device i keeps the d chunks among which its own is
        first = [edges[i // (2 * d) * 2 * d] for i in range(p)]  # of its partial sum
        keep = [[edges[i // d * d + n] - first[i] for n in (0, d)] for i in range(p)]
        halves = [
            send(partial[j][slice(*keep[i])], data[i].ctx) for i, j in enumerate(other)
        ]
        for i, half in enumerate(halves):
            half += partial[i][slice(*keep[i])]
        partial = halves
    return partial


def double(sums, data):
    """Give all p devices all p chunks: device i begins with `sums[i]`, chunk i.

    To the engine all chunks of a device are one variable, so what is to be passed on
    stays in arrays of its own, and only the last round writes to another's array.
    """
    p, chunks = len(data), [cut(x, len(data)) for x in data]
    have = [{i: x} for i, x in enumerate(sums)]
    for i, x in enumerate(sums):
        x.copyto(chunks[i][i])
    for other in rounds(reversed(partners(p))):
        last = other[0] == p // 2
        to = chunks if last else [[x.ctx] * p for x in data]
        came = [
            {c: send(x, to[i][c]) for c, x in have[j].items()}
            for i, j in enumerate(other)
        ]
        for i, new in enumerate(came):
            for c, x in new.items():
                last or x.copyto(chunks[i][c])
            have[i].update(new)
