"""What devices that share a layer tell each other: two moves, one the other's way back.

    reduce-scatter   every device has a part of all rows  →  the sum of some rows
    allgather        every device has some rows           →  all rows
    allreduce        the first, and then the second

Both go around the ring of `data_parallel.allreduce`, whose chunks are rows here. To go
backward through one of them is to do the other.
"""

from collections import namedtuple
from itertools import accumulate

from mxnet import np

from ..data_parallel import allreduce as ring
from ..data_parallel.traffic import cuts
from .dense import replicate, row_split


def reduce_scatter(Xs):
    """Give device i the sum, over the devices, of the i-th share of the rows.

    `Xs`: an array (n, …) per device, all of one shape. Returns arrays (nᵢ, …), whose
    rows differ by one at most. Device i sends (k − 1)/k of its array, when k divides n.
    Developed in the chapter *A Transformer over its heads*.
    """
    edges = cuts(Xs[0].shape[0], len(Xs))
    return ring.reduce_scatter([_chunks(X, edges) for X in Xs])


def allgather(parts):
    """Give every device all rows: those of device 0 first. (nᵢ, …) become (n, …)."""
    if len(parts) == 1:
        return parts
    edges = [*accumulate((part.shape[0] for part in parts), initial=0)]
    shape = (edges[-1], *parts[0].shape[1:])
    wholes = [np.empty(shape, dtype=part.dtype, ctx=part.ctx) for part in parts]
    ring.allgather(parts, [_chunks(whole, edges) for whole in wholes])
    return wholes


def _chunks(X, edges):
    """Shares of the rows. The ring ends with chunk i + 1 on device i: with share i."""
    shares = [X[a:b] for a, b in zip(edges, edges[1:])]
    return shares[-1:] + shares[:-1]


def allreduce(Xs):
    """Return the sum of `Xs` (n, …) for every device: 2(k − 1)/k of an array sent."""
    return allgather(reduce_scatter(Xs))


def same(Xs):
    """Nothing is sent: every device has it already."""
    return Xs


#: How the region between two divided layers meets them. `spread`: what lies between
#: becomes the whole input of a divided layer, on each device. `collect`: its outputs,
#: in parts, become what lies between. Backward, a gradient is collected where values
#: were spread, and spread where they were collected. `place`: what an array (n, …) of
#: the host is there, on each of a list of devices.
Way = namedtuple("Way", "spread collect place")
#: All rows on every device, between the layers too.
TENSOR = Way(same, allreduce, replicate)
#: Between the layers, a share of the rows on each device.
SEQUENCE = Way(allgather, reduce_scatter, row_split)
