"""Exercises of the chapter *The LSTM as a pipeline*."""

import numpy

from ..counts import counted
from ..question import Question, Task, compared


def copies(placement, T):
    """A message there and one back, for each step, at every change of device."""
    return 2 * T * sum(a != b for a, b in zip(placement, placement[1:]))


def gates(x, h, Wx, Wh, product):
    """The sums for the four gates of an LSTM, by eight products."""
    pairs = zip(numpy.split(Wx, 4), numpy.split(Wh, 4))
    return numpy.stack([product(x, wx.T) + product(h, wh.T) for wx, wh in pairs])


def _two_products(x, h, Wx, Wh, product):
    both = product(x, Wx.T) + product(h, Wh.T)
    return numpy.stack(numpy.split(both, 4, axis=1))


def _run_gates(function, counts, n, D, H):
    rng, columns = numpy.random.RandomState(3), []
    shapes = (n, D), (n, H), (4 * H, D), (4 * H, H)
    given = counts.keep(*(rng.randint(-9, 9, shape) * 1.0 for shape in shapes))

    def product(a, b):
        columns.append(b.shape[1])
        return a @ b

    sums = function(*given, product)
    return {"the array of sums": sums, "the list of the products' columns": columns}


QUESTIONS = {
    1: Question(
        "the number of time steps",
        21,
        [
            (20, "With 20 steps the bound is a little below 3.5."),
            (22, "Fewer are enough: try T = 21."),
            (28, "T steps on k devices take T + k - 1 slots, not T + k."),
        ],
    ),
    2: Question(
        "the largest number of time steps with which the pipeline sends less",
        130,
        [
            (131, "With 131 the pipeline sends more already."),
            (128, "The embedding, the decoder and the biases are parameters, too."),
            (65, "What leaves device 0? The gradients come to it."),
            (261, "With two devices the ring sends one array from each, not two."),
        ],
    ),
    3: Task(
        "a function `copies(placement, T)`",
        copies,
        [
            ("2 * T", "T",
             "For each hidden state that crosses, a gradient comes back."),
            ("2 * T", "2", "Each time step has a hidden state of its own to send."),
            ("sum(a != b for a, b in zip(placement, placement[1:]))",
             "(len({*placement}) - 1)",
             "That counts devices. A device can be left and come again."),
            ("sum(a != b for a, b in zip(placement, placement[1:]))", "max(placement)",
             "The largest number says nothing of the changes between the layers."),
            ("a != b", "a < b",
             "A change to a device with a lower number counts, too."),
            ("a != b", "abs(a - b)", "From device 2 to device 0 is one message."),
            ("2 * T", "2 * (T - 1)", "The first time step is sent like the others."),
            ("zip(placement, placement[1:])",
             "zip(placement, [*placement[1:], placement[0]])",
             "The last layer's output does not go back to the first layer."),
            ("sum(a != b for a, b in zip(placement, placement[1:]))", "len(placement)",
             "Layers on one device send each other nothing."),
        ],
        judge=compared(copies, [
            ([0], 3), ([0, 1], 1), ([0, 0, 1, 1], 16), ([0, 1, 0, 1], 16),
            ([0, 1, 1, 2, 0], 5), ([2, 0, 0], 2),
        ]),
    ),
    4: Task(
        "a function `gates(x, h, Wx, Wh, product)`",
        gates,
        [
            (_two_products,
             "That is right, and the second question: first with eight products."),
            ("zip(numpy.split(Wx, 4), numpy.split(Wh, 4))",
             "zip(numpy.split(Wx, 4)[::-1], numpy.split(Wh, 4)[::-1])",
             "The first rows belong to the first gate."),
            ("zip(numpy.split(Wx, 4), numpy.split(Wh, 4))",
             "[(Wx[k::4], Wh[k::4]) for k in range(4)]",
             "The rows of a gate stand together; these are every fourth."),
            ("numpy.split(Wh, 4)", "[Wh[: len(Wh) // 4]] * 4",
             "Each gate has its own rows of both matrices."),
            (" + product(h, wh.T)", "", "The state before has a product, too."),
            ("product(x, wx.T)", "x @ wx.T", "Every product goes through `product`."),
            ("numpy.stack(", "numpy.hstack(",
             "Asked are three axes: the gates come first."),
            ("product(x, wx.T) + product(h, wh.T) for",
             "(product(x, wx.T), product(h, wh.T)) for",
             "The two products of a gate are added up."),
            ("wh.T", "wh", "The rows of a fused matrix make columns: transposed."),
            ("numpy.stack([", "numpy.stack(axis=1, arrays=[",
             "The gates are the first axis, before the examples."),
        ],
        judge=counted(gates, _run_gates, "x ({}, {}), H = {}", [
            (1, 1, 2), (1, 2, 1), (3, 5, 4), (2, 3, 3),
        ]),
    ),
}
