"""What devices that share a layer tell each other: two moves, one the other's way back.

    reduce-scatter   every device has a part of all rows  →  the sum of some rows
    allgather        every device has some rows           →  all rows
    allreduce        the first, and then the second

To go backward through one of them is to do the other.
"""

from collections import namedtuple

from mxnet import np

from ..data_parallel.traffic import rounds, send, spans


def reduce_scatter(Xs):
    """Give device i the sum, over the devices, of the i-th share of the rows.

    `Xs`: an array (n, …) per device, all of one shape. Returns arrays (nᵢ, …), whose
    rows differ by one at most. Device i sends (k − 1)/k of its array, when k divides n.
    Developed in the chapter *A Transformer over its heads*.
    """
    k, shares = len(Xs), spans(Xs[0].shape[0], len(Xs))
    sums = [X[a:b] for X, (a, b) in zip(Xs, shares)]
    for shift in rounds(range(1, k)):
        for i, (X, (a, b)) in enumerate(zip(Xs, shares)):
            sums[i] = sums[i] + send(Xs[(i + shift) % k][a:b], X.ctx)
    return sums


def allgather(parts):
    """Give every device all rows: those of device 0 first. (nᵢ, …) become (n, …)."""
    edges = [0]
    for part in parts:
        edges.append(edges[-1] + part.shape[0])
    shape = (edges[-1], *parts[0].shape[1:])
    wholes = [np.empty(shape, dtype=part.dtype, ctx=part.ctx) for part in parts]
    for i, part in enumerate(parts):
        wholes[i][edges[i] : edges[i + 1]] = part
    for shift in rounds(range(1, len(parts))):
        for i, whole in enumerate(wholes):
            j = (i + shift) % len(parts)
            send(parts[j], whole[edges[j] : edges[j + 1]])
    return wholes


def allreduce(Xs):
    """Return the sum of `Xs` (n, …) for every device: 2(k − 1)/k of an array sent."""
    return allgather(reduce_scatter(Xs)) if len(Xs) > 1 else Xs


def same(Xs):
    """Nothing is sent: every device has it already."""
    return Xs


#: How the region between two divided layers meets them. `spread`: what lies between
#: becomes the whole input of a divided layer, on each device. `collect`: its outputs,
#: in parts, become what lies between. Backward, a gradient is collected where values
#: were spread, and spread where they were collected.
Way = namedtuple("Way", "spread collect")
#: All rows on every device, between the layers too.
TENSOR = Way(same, allreduce)
#: Between the layers, a share of the rows on each device.
SEQUENCE = Way(allgather, reduce_scatter)
