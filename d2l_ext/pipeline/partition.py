"""Where to cut a network: the placement with the smallest bottleneck; step times.

A placement names for each layer, in order, the number of its device: `(0, 0, 1)` puts
two layers on device 0 and the third on device 1. `balance` considers the work of the
busiest device, `predict` also the waiting. Plain Python: the costs may come from a
measurement (`layer_costs`), a data sheet or a guess.
"""

import math
from collections import namedtuple
from dataclasses import dataclass
from itertools import groupby, product

from ..checks import whole_number


def balance(times, k, memory=None, limits=None, crossing=None, names=None):
    """Return the contiguous placement of layers on `k` devices with the smallest
    bottleneck.

        balance([1, 2, 2, 3], k=2)                  # (0, 0, 0, 1)

    The bottleneck is the largest of `device_times`, which explains `times` and
    `crossing`. Devices are filled in order. One may stay empty: if there are more
    devices than layers, or if using it would cost more than it saves. Of equally good
    placements it returns one, on two devices the first in sorted order.

    `memory`: bytes of each layer, `limits`: bytes of each device, `math.inf` for no
    limit; both or neither. `names`: of the layers, for messages, default numbers.

    Raises `ValueError` for mismatched lengths (except of `names`), for entries that are
    negative, NaN or (except in `limits`) infinite, and when no placement respects the
    limits: it then names a layer that no device can hold, or each device that is over
    its limit in the nearest placement, with the bytes.

    The bottleneck counts work; see `predict` for waiting. Source: dynamic programming
    for the linear partition problem. Developed in the chapter *Where to cut*.
    """
    table, crossing = _checked(times, k, crossing)
    n, names = len(table), names or [str(i) for i in range(len(table))]
    memory, limits = _checked_memory(memory, limits, n, k)

    def excess(device, start, stop):
        """Return the bytes over the limit with layers `start` to `stop` - 1."""
        return sum(memory[start:stop]) - limits[device] if start < stop else 0

    def time(device, start, stop):
        if excess(device, start, stop) > 0:
            return math.inf
        own = sum(row[device] for row in table[start:stop])
        return own + _at_the_ends(crossing, start, stop)

    bottleneck, placement = _smallest_maximum(n, k, time)
    if bottleneck == math.inf:
        _, nearest = _smallest_maximum(n, k, excess)
        raise ValueError(_does_not_fit(nearest, memory, limits, names))
    return placement


def _smallest_maximum(n, k, cost):
    """Cut n layers into k runs: the smallest maximum of `cost(device, start, stop)`.

    Returns that cost and the placement. `best[stop]` is the answer for the layers
    below `stop` on the devices so far. Another device takes over at some `start`:

        layers     0 ………… start - 1 | start ………… stop - 1
        on         devices before   | this device
        costs      best[start]      | cost(device, start, stop)
    """
    best = [(cost(0, 0, stop), (0,) * stop) for stop in range(n + 1)]
    for device in range(1, k):
        best = [
            min(
                (
                    max(best[start][0], cost(device, start, stop)),
                    best[start][1] + (device,) * (stop - start),
                )
                for start in range(stop + 1)
            )
            for stop in range(n + 1)
        ]
    return best[n]


def all_placements(n, k, contiguous=True):
    """Return every placement of `n` layers on `k` devices: a sorted list of tuples.

    `contiguous`: only those in which device numbers never decrease. Otherwise all kⁿ,
    less those that differ only by renaming devices: a device is used only after all
    with lower numbers. Developed in the chapter *Where to cut*.
    """
    everything = product(range(k), repeat=n)
    if contiguous:
        return [p for p in everything if list(p) == sorted(p)]
    return [
        p for p in everything
        if all(d <= max(p[:i], default=-1) + 1 for i, d in enumerate(p))
    ]


def device_times(placement, times, k=None, crossing=None):
    """Return the busy time of each device in one step under a placement: a list of k
    numbers.

    `times`: each layer's time, or a row with its time on each device if they differ.
    `crossing`: for each layer, the time that its output costs *each* of two devices
    when the next layer is on the other, default 0. `k`: default the highest number in
    the placement plus one.

    Raises `ValueError` for mismatched lengths.
    Developed in the chapter *Where to cut*.
    """
    k = k or max(placement, default=0) + 1
    table, crossing = _checked(times, k, crossing)
    if len(placement) != len(table) or not set(placement) <= set(range(k)):
        raise ValueError(
            f"the placement {placement} must name one device below {k} for each of "
            f"{len(table)} layers"
        )
    totals = [0] * k
    for device, row in zip(placement, table):
        totals[device] += row[device]
    for cost, here, there in zip(crossing, placement, placement[1:]):
        if here != there:
            totals[here] += cost
            totals[there] += cost
    return totals


#: Work of a device from `start` to `end`, in milliseconds. `kind`: `'forward'`,
#: `'backward'` or `'copy'`; of `layer`, at time step `t`.
Span = namedtuple("Span", "device kind layer t start end")


@dataclass
class Layer:
    """The costs of a layer in one training step, over all time steps.

    `forward`, `backward`: milliseconds. `crossing`: milliseconds for its output to
    reach another device, and again for the gradient on the way back. `whole`: the layer
    works on all time steps at once.
    """

    name: str
    forward: float
    backward: float
    crossing: float = 0.0
    whole: bool = False
    parameter_bytes: int = 0
    activation_bytes: int = 0

    @property
    def time(self):
        """Milliseconds, forward and backward."""
        return self.forward + self.backward


def predict(placement, layers, seq_len):
    """Return the milliseconds of a training step: when the last `Span` of `simulate`
    ends.

        predict((0, 0, 1, 1), layers, seq_len=35)

    Raises `ValueError` as `simulate` does. Developed in *Where to cut*.
    """
    return max(span.end for span in simulate(placement, layers, seq_len))


def best_placement(placements, layers, seq_len):
    """Return the first of `placements` with the smallest `predict`."""
    return min(placements, key=lambda placement: predict(placement, layers, seq_len))


def simulate(placement, layers, seq_len):
    """Simulate a training step: a list of `Span`, in the order of the graph.

    `placement`: a device number per layer, contiguous or not. `layers`: a list of
    `Layer`, from the input on. `seq_len`: T, the number of time steps.

    Each device runs its cells in the order of `cells`, and starts one when the device
    is free and the cell's inputs are there. A result that another device needs is
    copied at once, by the device that computed it.

    Raises `ValueError` for mismatched lengths. Developed in the chapter *Where to cut*.
    """
    _check_step(placement, layers, seq_len)
    free = dict.fromkeys(placement, 0.0)
    there = {}  # (device, kind, layer): when the layer's latest result is on the device
    spans = []

    def work(device, kind, i, t, ms, since=0.0):
        start = max(free[device], since)
        spans.append(Span(device, kind, i, t, start, start + ms))
        free[device] = start + ms
        return free[device]

    for kind, i, t in cells(layers, seq_len):
        here, count = placement[i], 1 if layers[i].whole else seq_len
        source, reader = (i - 1, i + 1) if kind == "forward" else (i + 1, i - 1)
        # In this order, the latest result of the source is the one that is read.
        since = there.get((here, kind, source), 0.0)
        ms = getattr(layers[i], kind) / count
        there[here, kind, i] = work(here, kind, i, t, ms, since)
        if 0 <= reader < len(layers) and placement[reader] != here:
            # In both directions, a message has the size of the lower layer's output.
            ms = layers[min(i, reader)].crossing / count
            there[placement[reader], kind, i] = work(here, "copy", i, t, ms)
    return spans


def cells(layers, seq_len):
    """Return the work of a step, in the order of MXNet's graph: a list of (kind, layer,
    t).

    Layer after layer of the first time step, then of the next; then all of it back:

        forward     0 1 2 3   0 1 2 3   0 1 2 3      t = 0, 1, 2
        backward    3 2 1 0   3 2 1 0   3 2 1 0      t = 2, 1, 0

    A whole layer has one cell, t = 0, after all cells of the layer below. The matrix
    products of a device keep this order, because they share one temporary buffer of the
    executor.
    """
    forward = []
    for whole, group in groupby(range(len(layers)), key=lambda i: layers[i].whole):
        together = list(group)
        forward += [(i, t) for t in range(1 if whole else seq_len) for i in together]
    backward = [("backward", i, t) for i, t in reversed(forward)]
    return [("forward", i, t) for i, t in forward] + backward


def _at_the_ends(crossing, start, stop):
    """Return the cost of a run's cuts; the network's two ends are free."""
    before = crossing[start - 1] if 0 < start < stop else 0
    after = crossing[stop - 1] if start < stop < len(crossing) else 0
    return before + after


def _checked_memory(memory, limits, n, k):
    if memory is None and limits is None:
        memory, limits = [0] * n, [math.inf] * k
    memory, limits = ([] if x is None else list(x) for x in (memory, limits))
    _check_length("memory sizes", memory, n, "layers")
    _check_length("limits", limits, k, "devices")
    _check_numbers("the memory of layer", memory)
    _check_numbers("the limit of device", limits, infinite=True)
    return memory, limits


def _does_not_fit(nearest, memory, limits, names):
    """Return the message when every placement is over a limit."""
    largest = max(range(len(memory)), key=memory.__getitem__)
    over = memory[largest] - max(limits)
    if over > 0:
        return (
            f"layer {names[largest]} needs {memory[largest]:,} bytes, {over:,} more "
            "than any device has: split the layer itself, or use a smaller batch"
        )
    over = []
    for device, held in enumerate(device_times(nearest, memory, len(limits))):
        limit = limits[device]
        if held > limit:
            layers = ", ".join(name for name, d in zip(names, nearest) if d == device)
            over.append(f"device {device} has {layers}: {held:,} bytes, "
                        f"{held - limit:,} over its limit of {limit:,}")
    return ("no contiguous placement respects the limits. In the nearest, "
            f"{'; '.join(over)}. Use more devices or a smaller batch")


def _checked(times, k, crossing):
    """Return `times` with a column per device, `crossing` as a list; or an error."""
    whole_number("k", k)
    table = [list(t) if hasattr(t, "__iter__") else [t] * k for t in times]
    if not table:
        raise ValueError("there are no layers to place: give a time for each")
    for i, row in enumerate(table):
        _check_length(f"times of layer {i}", row, k, "devices")
        _check_numbers(f"the time of layer {i} on device", row)
    crossing = [0] * len(table) if crossing is None else list(crossing)
    _check_length("crossing costs", crossing, len(table), "layers")
    _check_numbers("the crossing cost of layer", crossing)
    return table, crossing


def _check_step(placement, layers, seq_len):
    if not layers:
        raise ValueError("there are no layers: give a list of Layer")
    _check_length("devices", placement, len(layers), "layers")
    whole_number("seq_len", seq_len)
    for cost in ("forward", "backward", "crossing"):
        _check_numbers(f"{cost} of layer", [getattr(layer, cost) for layer in layers])


def _check_length(what, values, n, of):
    """Raise `ValueError` unless there are `n` values."""
    if len(values) != n:
        raise ValueError(f"{len(values)} {what}, but {n} {of}: give one for each")


def _check_numbers(what, values, infinite=False):
    """Raise `ValueError` for a negative number, for NaN, and for an infinite one."""
    for i, value in enumerate(values):
        if not (0 <= value < float("inf") or infinite and value == float("inf")):
            raise ValueError(f"{what} {i} is {value}: give a "
                             f"{'' if infinite else 'finite '}number of at least 0")
