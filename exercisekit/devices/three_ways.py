"""Exercises of the chapter *Three ways to split a network*."""

import numpy

from ..counts import counted
from ..question import Question, Task, compared

SENT = "{} byte{s} sent"


def cheapest(n, features, hidden, outputs):
    """The way that sends the fewest numbers; each sends them there and back."""
    numbers = {"pipeline": n * hidden, "tensor": n * outputs}
    numbers["data"] = (features + outputs) * hidden
    return min(numbers, key=numbers.get)


def by_rows(X, W1, send):
    """ReLU of a layer that is cut by rows: the sum comes first."""
    half = X.shape[1] // 2
    here, there = X[:, :half] @ W1[:half], X[:, half:] @ W1[half:]
    return numpy.maximum(here + send(there), 0)


def run_by_rows(function, counts, n, features, hidden):
    rng = numpy.random.RandomState(5)
    X, W1 = counts.keep(rng.randn(n, features), rng.randn(features, hidden))
    send = counts.calls(SENT, lambda array: array, lambda array: array.nbytes)
    return numpy.asarray(function(X, W1, send))


QUESTIONS = {
    1: Question(
        'the way that fails: "pipeline", "tensor" or "data"',
        "data",
        [
            ("pipeline", "Nobody holds more than three of the ten layers."),
            ("tensor", "Each device holds a quarter of each layer."),
        ],
    ),
    2: Task(
        "a function of n, features, hidden, outputs",
        cheapest,
        [
            ("(features + outputs) * hidden", "outputs * hidden",
             "Both layers have a gradient: that of the first is sent, too."),
            ("(features + outputs) * hidden", "features * hidden",
             "Both layers have a gradient: that of the second is sent, too."),
            ("(features + outputs) * hidden", "n * (features + outputs) * hidden",
             "A gradient is as large as the weights, whatever the minibatch."),
            ('"tensor": n * outputs', '"tensor": n * hidden',
             "What are the two halves added up to? To the outputs."),
            ('"tensor": n * outputs', '"tensor": n * features',
             "Both devices have the inputs: what are the two halves added up to?"),
            ('"pipeline": n * hidden', '"pipeline": n * outputs',
             "Between the two layers are the hidden values: that is where it is cut."),
            ("min(numbers", "max(numbers", "That is the one that sends most."),
            (lambda n, features, hidden, outputs: "data",
             "What data parallelism sends does not grow with the minibatch, and for "
             + "few examples it is much."),
        ],
        judge=compared(cheapest, [
            (1, 1, 4, 2), (4, 6, 4, 2), (5, 2, 3, 9), (4, 64, 8, 32), (12, 6, 4, 2),
            (20, 6, 4, 2), (30, 3, 4, 9), (1000, 6, 4, 2),
        ]),
    ),
    3: Task(
        "a function of X, W1 and send",
        by_rows,
        [
            (lambda X, W1, send: numpy.maximum(X @ W1, 0),
             "Nothing went through send, so half of each sum is missing."),
            (lambda X, W1, send: numpy.maximum(send(X) @ W1, 0),
             "The examples are sent. What device 1 has computed is smaller."),
            ("here + send(there)",
             "numpy.maximum(here, 0) + send(numpy.maximum(there, 0))",
             "ReLU of a sum is not the sum of the ReLUs: add first."),
            ("here + send(there)", "send(here) + send(there)",
             "What device 0 has computed itself is there already."),
            ("numpy.maximum(here + send(there), 0)", "here + send(there)",
             "The ReLU is missing."),
            ("here + send(there)", "send(there)",
             "Device 0's own half of the sum is missing."),
            ("@ W1[:half], X[:, half:]", "@ W1[:half], X[:, :half]",
             "Device 1 has the other features, and the rows that belong to them."),
            ("here + send(there)", "here + send(there.astype('float32'))",
             "Sent in single precision: fewer bytes, and the last digits are lost."),
        ],
        judge=counted(by_rows, run_by_rows, "X {} × {}, {} hidden values",
                      [(1, 4, 1), (5, 7, 3), (24, 16, 4)], about=[SENT],
                      tolerance=1e-9),
    ),
}
