"""Checksums of weights: replicas that must be equal, compared by a few bytes.

The checksum of an array is the sum of its bits read as whole numbers, modulo 2⁶⁴. A
flipped bit changes the sum by a power of two below 2⁶⁴, so no single flip goes unseen.
And sums add up: the checksums of an array's pieces, on however many devices, add up to
that of the whole, modulo 2⁶⁴.
"""

from collections import Counter

import numpy

#: A checksum is a whole number below this.
MODULUS = 2**64


def checksum(arrays):
    """Return the checksum of each array: a list of whole numbers below 2⁶⁴.

        sums = [checksum(params) for params in replicas]
        odd_ones(sums)  # {} while all replicas agree

    `arrays`: `mxnet.np` or NumPy, of any shape and any dtype of numbers. Waits for
    arrays of MXNet. 8 bytes stand for an array of any size. Arrays of the same bits
    have the same checksum; arrays that differ in one bit do not. Several changes may
    cancel: swapping two numbers keeps the sum.

    Raises `ValueError` for arrays that hold objects. Developed in the chapter *Replicas
    that part ways*.
    """
    return [_of_one(x) for x in arrays]


def odd_ones(sums):
    """Return which arrays of which replicas differ: {replica: [numbers of its arrays]}.

    `sums`: the result of `checksum` for each replica. The value that most replicas have
    counts as right; without a majority, as between two replicas, all are named.
    Raises `ValueError` unless all replicas have the same number of arrays.
    """
    lengths = [len(own) for own in sums]
    if len({*lengths}) > 1:
        raise ValueError(f"the replicas have {lengths} arrays: give equally long lists")
    found = {}
    for number, values in enumerate(zip(*sums)):
        value, votes = Counter(values).most_common(1)[0]
        for replica, own in enumerate(values):
            if own != value or votes <= len(values) / 2:
                found.setdefault(replica, []).append(number)
    return found


def _of_one(x):
    x = numpy.ascontiguousarray(x if isinstance(x, numpy.ndarray) else x.asnumpy())
    if x.dtype.kind not in "biufc":
        raise ValueError(f"an array of {x.dtype} has no checksum: give numbers")
    width = min(x.dtype.itemsize, 8)
    words = x.reshape(-1).view(f"u{width}")
    return int(words.sum(dtype="u8")) % MODULUS
