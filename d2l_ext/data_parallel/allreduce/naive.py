"""Allreduce, naive: device 0 gathers all arrays, sums them, and sends the sum back."""

from ..traffic import checked, rounds, send
from .algorithm import Algorithm, Schedule, reverse


@checked
def allreduce(data):
    """Sum the arrays in `data`, one per device, and give every device the sum.

    `data`: a list of k arrays of one shape and dtype, array i on device i; changed
    in place. Naive: device 0 gathers, sums in the order of the list, and sends back.
    Raises `ValueError` for an empty list, arrays that differ in shape or dtype, or
    an array that is listed twice; `TypeError` for an array not of `mxnet.np`. On a CPU,
    give a copy of an array that a convolution has just returned: it may have oneDNN's
    layout, of which the algorithms that cut arrays cannot take views.
    Follows `allreduce` of *Dive into Deep Learning*, "Training on Multiple
    GPUs". Developed in the chapter *Data parallelism from scratch*.
    """
    for i in rounds(range(1, len(data))):
        data[0][:] += send(data[i], data[0].ctx)
    for i in rounds(range(1, len(data))):
        send(data[0], data[i])


def star(k):
    """Return a `Schedule`: an array per round to device 0, then one from it."""
    add = [[(i, 0, 0, 1)] for i in range(1, k)]
    return Schedule(1, add, reverse(add)[::-1])


ALGORITHM = Algorithm("naive", allreduce, star)
