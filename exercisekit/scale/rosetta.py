"""Exercises of the chapter *The same step in PyTorch and JAX*."""

import numpy

from ..question import Question, Task, compared


def weight(own, everyones):
    """What a process of DDP must multiply its mean loss by."""
    return own * len(everyones) / sum(everyones)


def to_book(arrays):
    """Dense weights, PyTorch's (out, in), as (in, out); all others as they are."""
    return [a.T if a.ndim == 2 else a for a in arrays]


def like(*shape):
    """An array of this shape, in which no two numbers are the same."""
    return numpy.arange(numpy.prod(shape)).reshape(shape)


QUESTIONS = {
    1: Question(
        "the factor for two devices",
        2,
        [
            (1, "A sum of two means is not the mean of all."),
            (0.5, "Nobody divides by the number of devices, so it is too large."),
            (64, "The losses are means already. How many are added?"),
        ],
    ),
    2: Task(
        "a function `to_book(arrays)`",
        to_book,
        [
            ("a.T if a.ndim == 2 else a", "a",
             "Dense weights lie the other way round in PyTorch."),
            ("a.T if a.ndim == 2 else a", "a.T",
             "Only dense weights lie differently; convolutions stay."),
            ("a.ndim == 2", "a.ndim == 2 and a.shape != a.T.shape",
             "A square weight is turned as well, though its shape does not show it."),
            ("a.T if", "a.reshape(a.shape[::-1]) if",
             "A new shape is not a transpose: the numbers stay in their order."),
            ("if a.ndim == 2 else a for a in arrays", "for a in arrays if a.ndim == 2",
             "What is not turned belongs into the list, too."),
        ],
        judge=compared(to_book, [
            ([like(3, 2)],), ([like(2, 2)],), ([like(3)],), ([like(1, 2, 3, 4)],),
            ([like(3, 2), like(3)],),
        ]),
    ),
    3: Task(
        "a function `weight(own, everyones)`",
        weight,
        [
            (" * len(everyones)", "",
             "DDP divides by the number of processes as well."),
            ("own * len(everyones) / sum(everyones)", "1.0",
             "Only with equal shares is the mean of means the mean."),
            ("own * len(everyones) / sum(everyones)",
             "sum(everyones) / (own * len(everyones))",
             "The other way round: who has more examples weighs more."),
            ("own * len(everyones) / sum(everyones)", "own",
             "That weighs sums, which nobody divides by the examples."),
            ("own * len(everyones) / sum(everyones)", "own / max(everyones)",
             "The weights must average to 1 over the processes."),
        ],
        judge=compared(weight, [
            (own, shares)
            for shares in ([7], [32, 32], [48, 16], [10, 20, 30])
            for own in shares
        ]),
    ),
}
