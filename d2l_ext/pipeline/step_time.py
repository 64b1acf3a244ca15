"""How long a step of an unrolled network takes under a placement, before it is run."""

from collections import namedtuple
from dataclasses import dataclass
from itertools import groupby

from ..checks import whole_number
from .partition import check_length, check_numbers

#: What a device did, from `start` to `end`: milliseconds. `kind`: `'forward'`,
#: `'backward'` or `'copy'`; of `layer`, at time step `t`.
Span = namedtuple("Span", "device kind layer t start end")


@dataclass
class Layer:
    """What a layer costs in one training step, all its time steps together.

    `forward`, `backward`: milliseconds. `crossing`: milliseconds that its output, and
    its gradient on the way back, each take to another device. `whole`: it works on
    all time steps at once.
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
    """Milliseconds of a training step: when the last `Span` of `simulate` ends.

        predict((0, 0, 1, 1), layers, seq_len=35)

    Raises `ValueError` as `simulate` does. Developed in *Where to cut*.
    """
    return max(span.end for span in simulate(placement, layers, seq_len))


def best_placement(placements, layers, seq_len):
    """Of `placements`, the one with the smallest `predict`; of equals, the first."""
    return min(placements, key=lambda placement: predict(placement, layers, seq_len))


def simulate(placement, layers, seq_len):
    """A training step on paper: a list of `Span`, in the order of the graph.

    `placement`: a device number per layer, contiguous or not. `layers`: a list of
    `Layer`, from the input on. `seq_len`: T, the number of time steps.

    Each device goes through its cells in the order of `cells`, and starts one when it
    is free and what the cell reads is there. What another device needs is copied to
    it at once, by the device that made it.

    Raises `ValueError` for what does not fit. Developed in the chapter *Where to cut*.
    """
    _check(placement, layers, seq_len)
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
            # Both ways, what crosses is as large as the output of the lower layer.
            ms = layers[min(i, reader)].crossing / count
            there[placement[reader], kind, i] = work(here, "copy", i, t, ms)
    return spans


def cells(layers, seq_len):
    """The work of a step, in the order of MXNet's graph: a list of (kind, layer, t).

    Layer after layer of the first time step, then of the next; and all of it back:

        forward     0 1 2 3   0 1 2 3   0 1 2 3      t = 0, 1, 2
        backward    3 2 1 0   3 2 1 0   3 2 1 0      t = 2, 1, 0

    A whole layer has one cell, t = 0, after all cells of the layer below. A device
    keeps to this order: an executor gives its operators there one temporary memory.
    """
    forward = []
    for whole, group in groupby(range(len(layers)), key=lambda i: layers[i].whole):
        together = list(group)
        forward += [(i, t) for t in range(1 if whole else seq_len) for i in together]
    backward = [("backward", i, t) for i, t in reversed(forward)]
    return [("forward", i, t) for i, t in forward] + backward


def _check(placement, layers, seq_len):
    if not layers:
        raise ValueError("there are no layers: give a list of Layer")
    check_length("devices", placement, len(layers), "layers")
    whole_number("seq_len", seq_len)
    for cost in ("forward", "backward", "crossing"):
        check_numbers(f"{cost} of layer", [getattr(layer, cost) for layer in layers])
