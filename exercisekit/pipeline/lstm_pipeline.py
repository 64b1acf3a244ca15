"""Exercises of the chapter *The LSTM as a pipeline*."""

import numpy

from ..counts import counted
from ..question import Question, Task, compared


def copies(placement, T):
    """Return the messages: one in each direction, per step and change of device."""
    return 2 * T * sum(a != b for a, b in zip(placement, placement[1:]))


def gates(x, h, Wx, Wh, product):
    """Return the sums for an LSTM's gates and candidate, by eight products."""
    pairs = zip(numpy.split(Wx, 4), numpy.split(Wh, 4))
    return numpy.stack([product(x, wx.T) + product(h, wh.T) for wx, wh in pairs])


def _every_fourth_row(x, h, Wx, Wh, product):
    in_turn = [numpy.concatenate([W[k::4] for k in range(4)]) for W in (Wx, Wh)]
    return gates(x, h, *in_turn, product)


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
            (lambda placement, T: copies(placement, T) // 2,
             "For each hidden state that crosses, a gradient comes back."),
            (lambda placement, T: copies(placement, 1),
             "Each time step has its own hidden state to send."),
            (lambda placement, T: 2 * T * (len({*placement}) - 1),
             "That counts devices. A placement can return to a device."),
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
            (lambda x, h, Wx, Wh, product: gates(x, h, Wx, Wh, product)[::-1],
             "The first rows belong to the first gate."),
            (_every_fourth_row,
             "The rows of a gate are consecutive; you take every fourth row."),
            (lambda x, h, Wx, Wh, product:
             numpy.stack([product(x, wx.T) for wx in numpy.split(Wx, 4)]),
             "The previous state has a product, too."),
        ],
        judge=counted(gates, _run_gates, "x ({}, {}), H = {}", [
            (1, 1, 2), (1, 2, 1), (3, 5, 4), (2, 3, 3),
        ]),
    ),
}
