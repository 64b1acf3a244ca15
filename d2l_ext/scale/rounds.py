"""Allreduces simulated message by message, from devices that are ready at odd times."""

import numpy

from ..data_parallel.allreduce import tree
from .exchange import WAYS


def finish(way, ready, nbytes, link):
    """When each device has the sum, if device i has its gradient at `ready[i]`.

    `way`: `'naive'`, `'tree'` or `'ring'`. `ready`: seconds, one per device. A message
    starts when both of its ends are free, and takes α + n·β. From equal times all end
    as `traffic.seconds` says; from others, only this tells.

    Returns a NumPy array. Raises `ValueError` for an unknown way, and no devices.
    Developed in the chapter *A cost model*.
    """
    ready = numpy.array(ready, dtype=float)
    if way not in _FINISH:
        raise ValueError(f"unknown way {way!r}: choose one of {', '.join(_FINISH)}")
    if not ready.size:
        raise ValueError("there are no devices: give a time for each")
    return _FINISH[way](ready, nbytes, link) if ready.size > 1 else ready


def train(way, compute, nbytes, link):
    """The end of each step, a NumPy array: devices compute, then exchange, and so on.

    `compute`: seconds, a row per step with an entry per device. Nobody waits for
    anything but messages: a device goes on as soon as it has its own sum.
    """
    now, ends = numpy.zeros(numpy.shape(compute)[1]), []
    for seconds in numpy.asarray(compute, dtype=float):
        now = finish(way, now + seconds, nbytes, link)
        ends.append(now.max())
    return numpy.array(ends)


def _naive(ready, nbytes, link):
    # Device 0 takes the arrays in order, and then sends the sum in the same order.
    message, now, done = link.seconds(nbytes), ready[0], ready.copy()
    for other in ready[1:]:
        now = max(now, other) + message
    done[1:] = now + message * numpy.arange(1, ready.size)
    done[0] = done[-1]
    return done


def _tree(ready, nbytes, link):
    message, rounds = link.seconds(nbytes), tree(ready.size)
    for pairs in map(numpy.array, rounds):
        child, parent = pairs.T
        both = numpy.maximum(ready[child], ready[parent]) + message
        ready[child] = ready[parent] = both
    for pairs in map(numpy.array, reversed(rounds)):
        child, parent = pairs.T
        ready[parent] = numpy.maximum(ready[parent], ready[child]) + message
        ready[child] = ready[parent]
    return ready


def _ring(ready, nbytes, link):
    """2(k − 1) rounds of tᵢ = max(tᵢ, tᵢ₋₁) + c, without going through them.

    After r rounds tᵢ is the maximum of the r + 1 devices behind i, plus r·c. Maxima of
    2, 4, 8 … devices are made from those before: each step doubles the window.
    """
    k = ready.size
    rounds, window = 2 * (k - 1), 1
    while window < k:  # after k − 1 rounds everybody has heard of everybody
        ready = numpy.maximum(ready, numpy.roll(ready, min(window, k - window)))
        window *= 2
    return ready + rounds * link.seconds(nbytes / k)


_FINISH = {"naive": _naive, "tree": _tree, "ring": _ring}
assert set(_FINISH) < set(WAYS)
