"""Answers to exercises of the part on tensor parallelism."""

import numpy

from .question import Question, Task


class Allreduce:
    """Sums NumPy arrays, and counts the bytes of one of them each time."""

    def __init__(self):
        self.nbytes = []

    def __call__(self, arrays):
        self.nbytes.append(arrays[0].nbytes)
        return sum(arrays)


def parts_of_a_block():
    """X (8, 8), the columns of W1 and the rows of W2 on three devices, and b2."""
    rng = numpy.random.RandomState(7)
    W1, W2 = rng.randn(8, 12), rng.randn(12, 8)
    return rng.randn(8, 8), numpy.hsplit(W1, 3), numpy.vsplit(W2, 3), rng.randn(8)


def forward_sum(X, W1s, W2s, b2, allreduce):
    """The output of two layers whose parts are summed once, and b2 added once."""
    return allreduce([X @ W1 @ W2 for W1, W2 in zip(W1s, W2s)]) + b2


def judge_forward_sum(function):
    X, W1s, W2s, b2 = parts_of_a_block()
    allreduce, right = Allreduce(), X @ numpy.hstack(W1s) @ numpy.vstack(W2s) + b2
    found = numpy.asarray(function(X, W1s, W2s, b2, allreduce))
    for times in (-1, 2):
        if found.shape == right.shape and numpy.allclose(found - times * b2, right):
            return f"The output is wrong by b2, {times} times. How often is it added?"
    return compared(found, right, allreduce, "What is added up?")


def input_gradient(dY, hidden, W1s, W2s, allreduce):
    """Each device's contribution to the input's gradient, summed."""
    triples = zip(hidden, W1s, W2s)
    return allreduce([dY @ W2.T * (H > 0) @ W1.T for H, W1, W2 in triples])


def judge_input_gradient(function):
    X, W1s, W2s, _ = parts_of_a_block()
    dY = numpy.random.RandomState(8).randn(8, 8)
    hidden, allreduce = [numpy.maximum(X @ W1, 0) for W1 in W1s], Allreduce()
    found = numpy.asarray(function(dY, hidden, W1s, W2s, allreduce))
    right = input_gradient(dY, hidden, W1s, W2s, sum)
    hint = (
        "Does it go back through the ReLU?"
        if allreduce.nbytes
        else "What do the other devices contribute?"
    )
    return compared(found, right, allreduce, hint)


def compared(found, right, allreduce, hint):
    """What is not right of a result, and of the bytes that were summed."""
    if found.shape != right.shape:
        return f"Its shape is {found.shape}, and should be {right.shape}."
    wrong = (abs(found - right) > 1e-9).sum()
    if wrong:
        return f"{wrong} of {right.size} numbers are wrong. {hint}"
    if not allreduce.nbytes:
        return "Nothing went through allreduce: no device has all of the weights."
    if sum(allreduce.nbytes) > right.nbytes:
        total = sum(allreduce.nbytes)
        return f"It sums {total:,} bytes; {right.nbytes:,} are enough."
    return ""


QUESTIONS = {
    ("layerwise", 1): Question(
        "the number of devices",
        6,
        [
            (5, "A fifth is still more than 100 MB: round up."),
            (3, "The block has two matrices."),
            (2, "A number has 4 bytes, and there are two matrices."),
            (11, "That would be double precision."),
        ],
    ),
    ("layerwise", 2): Task(
        "your function forward_sum",
        forward_sum,
        [
            (
                lambda X, W1s, W2s, b2, allreduce: allreduce(
                    [X @ W1 @ W2 + b2 for W1, W2 in zip(W1s, W2s)]
                ),
                "The output is wrong by b2, 2 times. How often is it added?",
            ),
            (
                lambda X, W1s, W2s, b2, allreduce: (
                    X @ numpy.hstack(W1s) @ numpy.vstack(W2s) + b2
                ),
                "Nothing went through allreduce: no device has all of the weights.",
            ),
        ],
        judge=judge_forward_sum,
    ),
    ("layerwise", 3): Task(
        "your function input_gradient",
        input_gradient,
        [
            (
                lambda dY, hidden, W1s, W2s, allreduce: allreduce(
                    [dY @ W2.T @ W1.T for W1, W2 in zip(W1s, W2s)]
                ),
                "64 of 64 numbers are wrong. Does it go back through the ReLU?",
            ),
            (
                lambda dY, hidden, W1s, W2s, allreduce: (
                    dY @ W2s[0].T * (hidden[0] > 0) @ W1s[0].T
                ),
                "64 of 64 numbers are wrong. What do the other devices contribute?",
            ),
        ],
        judge=judge_input_gradient,
    ),
    ("layerwise", 4): Question(
        "the bytes that each device gives to the allgather of the hidden values",
        16 * 1024 * 4,
        [
            (16 * 2048 * 4, "Each device has half of the hidden values."),
            (16 * 1024, "These are numbers; each has 4 bytes."),
            (16 * 512 * 4, "That is the output. What does the second layer read?"),
        ],
    ),
}
