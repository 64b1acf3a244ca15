"""Exercises of the chapter *Tensor parallelism*."""

import numpy

from ..counts import counted
from ..question import Question, Task

SUMMED = "{} byte{s} summed"


def collective(counts, name, made):
    """Return a collective that calls `made` with all arrays, and counts one's bytes."""

    def called(arrays):
        arrays = list(arrays)
        if len(arrays) > 1:
            counts.add(name, arrays[0].nbytes)
        return made(arrays)

    return called


def forward_sum(X, W1s, W2s, b2, allreduce):
    """Return two layers' output: parts summed once, and b2 added once."""
    return allreduce([X @ W1 @ W2 for W1, W2 in zip(W1s, W2s)]) + b2


def input_gradient(dY, hidden, W1s, W2s, allreduce):
    """Return the sum of the contributions of each device's hidden values."""
    contributions = []
    for H, W1, W2 in zip(hidden, W1s, W2s):
        dH = dY @ W2.T * (H > 0)
        contributions.append(dH @ W1.T)
    return allreduce(contributions)


def _block(n, width, hidden):
    """Return x, its W1 by columns and W2 by rows, and b2: small whole numbers."""
    rng, cuts = numpy.random.RandomState(7), numpy.cumsum(hidden)
    shapes = (n, width), (width, cuts[-1]), (cuts[-1], width), (width,)
    X, W1, W2, b2 = (rng.randint(-3, 5, shape) * 1.0 for shape in shapes)
    return X, numpy.split(W1, cuts[:-1], axis=1), numpy.split(W2, cuts[:-1]), b2


def _run_forward_sum(function, counts, *case):
    given = counts.keep(*_block(*case))
    return function(*given, collective(counts, SUMMED, sum))


def _run_input_gradient(function, counts, *case):
    X, W1s, W2s, b2 = _block(*case)
    hidden = [numpy.maximum(X @ W1, 0) for W1 in W1s]
    given = counts.keep(X + b2, hidden, W1s, W2s)
    return function(*given, collective(counts, SUMMED, sum))


def _times_hidden(dY, hidden, W1s, W2s, allreduce):
    triples = zip(hidden, W1s, W2s)
    return allreduce([dY @ W2.T * H @ W1.T for H, W1, W2 in triples])


QUESTIONS = {
    1: Question(
        "the number of devices",
        6,
        [
            (5, "A fifth is still more than 100 MB: round up."),
            (3, "The block has two matrices."),
            (2, "A number has 4 bytes, and there are two matrices."),
            (11, "That would be double precision."),
        ],
    ),
    2: Task(
        "a function `forward_sum`",
        forward_sum,
        [
            (lambda X, W1s, W2s, b2, allreduce:
             allreduce([X @ W1 @ W2 + b2 for W1, W2 in zip(W1s, W2s)]),
             "Every device adds b2: how often is it in the sum?"),
            (lambda X, W1s, W2s, b2, allreduce: forward_sum(X, W1s, W2s, 0, allreduce),
             "Where is b2?"),
            (lambda X, W1s, W2s, b2, allreduce: forward_sum(X, W1s, W2s, b2, sum),
             "No device has the others' parts: allreduce adds them up."),
        ],
        judge=counted(forward_sum, _run_forward_sum, "X ({}, {}), hidden {}", [
            (1, 1, [1]), (1, 2, [1, 1]), (2, 3, [2, 2, 2]), (8, 8, [5, 1, 6]),
        ], about=[SUMMED]),
    ),
    3: Task(
        "a function `input_gradient`",
        input_gradient,
        [
            (lambda dY, hidden, W1s, W2s, allreduce:
             allreduce([dY @ W2.T @ W1.T for W1, W2 in zip(W1s, W2s)]),
             "Does it go back through the ReLU?"),
            (_times_hidden,
             "The ReLU's slope is 1 or 0. Its output is something else."),
            (lambda dY, hidden, W1s, W2s, allreduce:
             input_gradient(dY, hidden, W1s, W2s, sum),
             "Each device knows its own contribution: allreduce adds them up."),
        ],
        judge=counted(input_gradient, _run_input_gradient, "dY ({}, {}), hidden {}", [
            (2, 2, [3]), (1, 2, [3, 3]), (2, 3, [2, 2, 2]), (8, 8, [5, 1, 6]),
        ], about=[SUMMED]),
    ),
    4: Question(
        "the bytes that each device gives to the allgather of the hidden values",
        16 * 1024 * 4,
        [
            (16 * 2048 * 4, "Each device has half of the hidden values."),
            (16 * 1024, "These are numbers; each has 4 bytes."),
            (16 * 512 * 4, "That is the output. What does the second layer read?"),
        ],
    ),
}
