"""Allreduce by halving and doubling, in a logarithmic number of rounds.

In the first round a device swaps halves of the array with a partner, then quarters,
then eighths: each sends the part that the other keeps. The same rounds in reverse order
return the sum. If the number of devices is a power of two and divides the elements,
each of them sends as many bytes as in the ring.
"""

from ...checks import whole_number
from ..traffic import checked, cuts, rounds, send
from .algorithm import Algorithm, Schedule, reverse
from .ring_of_chunks import cut


@checked
def allreduce_halving(data, pieces=1):
    """Allreduce as `allreduce` does, in 2·log₂ k rounds if k is a power of two.

        allreduce_halving(data, pieces=32)

    For such a k, each device sends as many bytes as in the ring, if k divides each
    piece. For any other k, with p the largest power of two below k, each device
    beyond the first p sends its whole array to one of them, which sends the sum back:
    two more rounds, in which k − p of the first p receive and send one more array.
    `pieces`: the number of pieces of the array, default 1, which are summed one after
    another, each in its own rounds. A piece that fits in a cache is read from memory
    once.
    `data` and errors: as in `allreduce`; `ValueError` for fewer than one piece.
    Source: Thakur, Rabenseifner and Gropp (2005). Developed in the chapter *Halving
    and doubling*.
    """
    whole_number("pieces", pieces)
    for piece in zip(*(cut(x, pieces) for x in data)):
        fold(piece)


def fold(data):
    """Sum in place the arrays of k devices, through the first p, a power of two."""
    p = 2 ** (len(data).bit_length() - 1)
    own, extra = data[:p], data[p:]
    for others in rounds([extra] if extra else []):
        for x, other in zip(own, others):
            x += send(other, x.ctx)
    double(halve(own), own)
    for others in rounds([extra] if extra else []):
        for x, other in zip(own, others):
            send(x, other)


def partners(p):
    """Return the partner of each of p devices in the halving, round by round.

    p = 8       0   1   2   3   4   5   6   7    device
    round 1     4   5   6   7   0   1   2   3    a half of the array
    round 2     2   3   0   1   6   7   4   5    a quarter
    round 3     1   0   3   2   5   4   7   6    an eighth
    """
    return [[i ^ 2**b for i in range(p)] for b in reversed(range(p.bit_length() - 1))]


def position(i, d, edges):
    """Return where the d chunks of device i lie within the 2d chunks around them."""
    first, own = edges[i // (2 * d) * 2 * d], i // d * d
    return slice(edges[own] - first, edges[own + d] - first)


def halve(data):
    """Reduce-scatter: return p arrays, chunk i of the sum on device i.

    p is a power of two. `data` is only read: an arriving half becomes the partial sum.
    """
    p, partial, edges = len(data), data, cuts(data[0].size, len(data))
    for other in rounds(partners(p)):
        keep = [position(i, other[0], edges) for i in range(p)]
        halves = [send(partial[j][keep[i]], data[i].ctx) for i, j in enumerate(other)]
        for i, half in enumerate(halves):
            half += partial[i][keep[i]]
        partial = halves
    return partial


def double(sums, data):
    """Allgather: all p devices get all p chunks; device i begins with `sums[i]`.

    To the engine an array is one variable, so chunks that are passed on are joined in
    new arrays, and only the last round writes into `data`.
    """
    from mxnet import np  # the schedule needs no MXNet

    p, edges = len(data), cuts(data[0].size, len(data))
    for other in rounds(reversed(partners(p))):
        has = [position(i, other[0], edges) for i in range(p)]
        wholes = data
        if other[0] < p // 2:  # another round will pass it on
            wholes = [
                np.empty(x.size + sums[j].size, dtype=x.dtype, ctx=x.ctx)
                for x, j in zip(sums, other)
            ]
        for i, x in enumerate(sums):
            x.copyto(wholes[i][has[i]])
        for i, j in enumerate(other):
            send(sums[j], wholes[i][has[j]])
        sums = wholes


def messages(k):
    """Return the fold, the swaps of `partners`, and both of them back, as a `Schedule`.

    With a partner at distance d, a device keeps the d chunks that its own is among.
    """
    p = 2 ** (k.bit_length() - 1)
    extra = [[(i + p, i, 0, p) for i in range(k - p)]] if k > p else []
    swaps = [
        [(j, i, i // abs(i - j) * abs(i - j), abs(i - j)) for i, j in enumerate(row)]
        for row in partners(p)
    ]
    return Schedule(p, extra + swaps, reverse(extra + swaps))


def cost(k, chunks):
    """Return 2·log₂ p rounds, 2(p − 1)/p of the array; if k > p, two rounds and two
    arrays more.
    """
    down, up = k.bit_length() - 1, (k - 1).bit_length()  # the logarithm, rounded
    return 2 * up, 2 * (1 - 1 / 2**down) + 2 * (up > down)


ALGORITHM = Algorithm("halving", allreduce_halving, messages, cost)
