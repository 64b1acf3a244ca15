"""What an allreduce costs, in closed form: bytes, rounds, and seconds."""

from ..checks import known_name, whole_number
from .allreduce.algorithm import algorithms
from .traffic import Traffic


def expected(algorithm, k, nbytes, itemsize=4, chunks=1):
    """Return the `Traffic` of an allreduce of `nbytes` per device on `k` devices.

    `algorithm`: one of `names()`. `itemsize`: bytes of an element, default float32.
    `chunks`: c, for those of `names(chunked=True)`. Bytes in each direction,
    with N for `nbytes` and p for the largest power of two up to k:

        naive        device 0: (k − 1)·N, all others: N          2(k − 1) rounds
        tree         N to the parent and N for each child        2⌈log₂ k⌉ rounds
        ring         2(k − 1)/k·N, if k divides the elements     2(k − 1) rounds
        halving      2(p − 1)/p·N, if p divides them             2·log₂ p rounds
                     k > p: N more for k − p of the p,
                     only N for the others                       2 rounds more
        double tree  in each tree, of N/2, as in a tree          4(c + ⌊log₂ k⌋ − 1)
                     at most 2·N; two devices: N                 rounds; k = 2: 2·c
        network      N, summed by the switches                   c + 1 rounds

    k = 1: nothing is sent. In an uneven ring, each device leaves out two of the k
    chunks, whose sizes differ. In double trees, an odd number of elements adds one to
    the 2·N, and for some k, such as 8, two of the rounds carry nothing.
    Raises `ValueError` for an unknown algorithm, for `k`, `itemsize` or `chunks` below
    1, or for bytes that are not a whole number of elements.
    """
    found = _known(algorithm, k, chunks)
    whole_number("itemsize", itemsize)
    size, rest = divmod(nbytes, itemsize)
    if rest or size < 0:
        raise ValueError(f"{nbytes} bytes are not a whole number of "
                         f"elements of {itemsize} bytes")
    moved = Traffic([0] * k, [0] * k, found.rounds(k, chunks)[0])
    for i, j, elements in found.messages(k, size):
        moved.sent[i] += elements * itemsize
        moved.received[j] += elements * itemsize
    return moved


def seconds(algorithm, k, nbytes, alpha, beta, chunks=1):
    """Return the seconds of an allreduce in the α–β model: the sum over rounds of α +
    n·β.

    `algorithm`, `k`, `nbytes`, `chunks`: as in `expected`. `alpha`: latency of a
    message, in seconds. `beta`: seconds per byte. Additions are free in this model.

        naive        2(k − 1)·(α + N·β)     device 0 serves one after another
        tree         2⌈log₂ k⌉·(α + N·β)    binomial reduce, then broadcast
        ring         2(k − 1)·(α + N/k·β)   all links at once, each with a chunk
        halving      2·log₂ p·α + 2(p − 1)/p·N·β, and 2(α + N·β) if k > p
        double tree  4(c + ⌊log₂ k⌋ − 1)·(α + N/2c·β); k = 2: 2·c·(α + N/2c·β)
        network      (c + 1)·(α + N/c·β)    one chunk goes up while the last comes down

    k = 1: 0. Raises `ValueError` for an unknown algorithm, or `k` or `chunks` below 1.
    """
    count, arrays = _known(algorithm, k, chunks).rounds(k, chunks)
    return count * alpha + arrays * nbytes * beta


def names(chunked=False):
    """Return the names for `expected` and `seconds`: a tuple, in alphabetical order.

    `chunked`: those that cut an array into a given number of chunks, instead of those
    that send whole arrays or one chunk per device.
    """
    return tuple(a.name for a in algorithms().values() if a.chunked == chunked)


def _known(algorithm, k, chunks):
    known_name("algorithm", algorithm, algorithms())
    whole_number("k", k)
    whole_number("chunks", chunks)
    return algorithms()[algorithm]
