"""Exercises of the chapter *Three ways to split a network*."""

import numpy

from ..counts import counted
from ..question import Question, Task, compared

SENT = "{} byte{s} sent"


def cheapest(n, features, hidden, outputs):
    """Return the way that sends the fewest numbers per direction."""
    numbers = {
        "pipeline": n * hidden,
        "tensor": n * outputs,
        "data": (features + outputs) * hidden,
    }
    return min(numbers, key=numbers.get)


def by_rows(X, W1, send):
    """Return the ReLU of a layer that is cut by rows: add the two parts first."""
    half = X.shape[1] // 2
    on_device_0 = X[:, :half] @ W1[:half]
    on_device_1 = X[:, half:] @ W1[half:]
    return numpy.maximum(on_device_0 + send(on_device_1), 0)


def run_by_rows(function, counts, n, features, hidden):
    rng = numpy.random.RandomState(5)
    X, W1 = counts.keep(rng.randn(n, features), rng.randn(features, hidden))
    sent = []

    def deliver(array):
        sent.append(numpy.sum(array))
        return array

    send = counts.calls(SENT, deliver, lambda array: array.nbytes)
    hidden_values = numpy.asarray(function(X, W1, send))
    return {"the result": hidden_values, "the sum of what is sent": sum(sent)}


def hidden_values_for_tensor(n, features, hidden, outputs):
    weights = (features + outputs) * hidden
    return "data" if weights < n * hidden else "pipeline"


def relu_before_the_sum(X, W1, send):
    half = X.shape[1] // 2
    parts = X[:, :half] @ W1[:half], send(numpy.maximum(X[:, half:] @ W1[half:], 0))
    return numpy.maximum(parts[0], 0) + parts[1]


QUESTIONS = {
    1: Question(
        'the way that fails: "pipeline", "tensor" or "data"',
        "data",
        [
            ("pipeline", "No device stores more than three of the ten layers."),
            ("tensor", "Each device stores a quarter of each layer."),
        ],
    ),
    2: Task(
        "a function `cheapest(n, features, hidden, outputs)`",
        cheapest,
        [
            (lambda n, features, hidden, outputs: cheapest(n, 0, hidden, outputs),
             "Both layers have gradients: those of the first are sent, too."),
            (lambda n, features, hidden, outputs:
             "pipeline" if hidden < outputs else "tensor",
             "A gradient has the size of the weights, whatever the minibatch."),
            (hidden_values_for_tensor,
             "Tensor parallelism adds up the outputs, not the hidden values."),
        ],
        judge=compared(cheapest, [
            (1, 1, 4, 2), (4, 6, 4, 2), (5, 2, 3, 9), (4, 64, 8, 32), (12, 6, 4, 2),
            (15, 6, 4, 2), (17, 6, 4, 2), (20, 6, 4, 2), (30, 3, 4, 9),
            (40, 20, 4, 2), (1000, 6, 4, 2),
        ]),
    ),
    3: Task(
        "a function `by_rows(X, W1, send)`",
        by_rows,
        [
            (lambda X, W1, send: numpy.maximum(X @ W1, 0),
             "Device 1 sends nothing, but it has to compute half of each sum."),
            (lambda X, W1, send: numpy.maximum(send(X) @ W1, 0),
             "That sends the examples. The results of device 1 are smaller."),
            (relu_before_the_sum,
             "The ReLU of a sum is not the sum of the ReLUs: add first."),
        ],
        judge=counted(by_rows, run_by_rows, "X {} × {}, {} hidden values",
                      [(1, 4, 1), (5, 8, 3), (24, 16, 4)], about=[SENT],
                      tolerance=1e-9),
    ),
}
