"""The norm of a gradient whose parts lie on several devices.

A norm is not a sum of norms, nor their mean. The squares add up: each device sends the
sum of its squares, one number, and all take the root of the total. A number that
several devices hold must count once, so its square is divided by the number of copies.

                        device 0          device 1         copies
    data parallelism    all of it         all of it        2
    ZeRO                first half        second half      1
    pipeline            first layers      last layers      1
    tensor              W1 left, b2       W1 right, b2     1 for W1, 2 for b2
"""

from numbers import Integral

from mxnet import np

from ..data_parallel.allreduce import allreduce


def global_norm(parts, copies=1, reduce=allreduce):
    """Return the Euclidean norm of a gradient in `parts`: one float64 array (1,) per
    device.

        norms = global_norm([[dW1, db1], [dW2, db2]])  # two stages of a pipeline

    `parts`: a list per device of the `mxnet.np` arrays on it, which are only read.
    `copies`: how many devices hold the same numbers, for all arrays, or a list like
    `parts` with a whole number for each array. `reduce`: an allreduce, here of 8 bytes;
    default the naive one. Does not wait. All devices get the same bits.

    Raises `ValueError` for no devices, a device without arrays, arrays on several
    devices in one list, or copies that do not fit.
    Source: the squares of a vector's parts add up to its own. Developed in the chapter
    *Wrong without an error*.
    """
    counts = _copies(parts, copies)
    squares = []
    for i, (arrays, own) in enumerate(zip(parts, counts)):
        if not arrays or len({x.ctx for x in arrays}) > 1:
            places = ", ".join(sorted({str(x.ctx) for x in arrays})) or "no device"
            raise ValueError(f"part {i} lies on {places}: give arrays of one device")
        squares.append(sum(_square_sum(x) / n for x, n in zip(arrays, own)))
    reduce(squares)
    return [np.sqrt(total) for total in squares]


def clip(parts, norms, limit):
    """Scale all arrays of `parts` by `limit` / norm where the norm exceeds `limit`.

    `parts`: as in `global_norm`, no array of shape (); changed in place. `norms`: its
    result. Does not wait. A norm that is not finite leaves the arrays as they are.
    Raises `ValueError` unless `limit` is positive.
    """
    if not limit > 0:
        raise ValueError(f"limit must be a number above 0, not {limit!r}")
    for arrays, norm in zip(parts, norms):
        above = (norm > limit) * np.isfinite(norm)
        factor = np.where(above, float(limit) / norm, np.ones_like(norm))
        for x in arrays:
            x *= factor.astype(x.dtype)


def _square_sum(x):
    """Return the sum of the squares of `x`, both in float64: an array (1,)."""
    return np.sum(np.square(x.reshape(-1).astype("float64")), keepdims=True)


def _copies(parts, copies):
    """Return a list of counts per device, one for each array."""
    if not parts:
        raise ValueError("there are no parts: give a list of arrays per device")
    if not isinstance(copies, (list, tuple)):
        copies = [[copies] * len(arrays) for arrays in parts]
    shape = [len(arrays) for arrays in parts]
    given = [len(own) if isinstance(own, (list, tuple)) else None for own in copies]
    if shape != given or not all(isinstance(n, Integral) and n >= 1
                                 for own in copies for n in own):
        raise ValueError(
            f"copies is {copies}, and the devices hold {shape} arrays: give each array "
            "the number of devices that hold it, at least 1"
        )
    return copies
