"""Exercises of the chapter *The same step in PyTorch and JAX*."""

import numpy

from ..question import Question, Task, compared


def weight(own, everyones):
    """Return the factor by which a process of DDP must multiply its mean loss."""
    return own * len(everyones) / sum(everyones)


def to_book(arrays):
    """Return dense weights, PyTorch's (out, in), as (in, out); others as they are."""
    return [a.T if a.ndim == 2 else a for a in arrays]


def like(*shape):
    """Return an array of this shape, in which no two numbers are the same."""
    return numpy.arange(numpy.prod(shape)).reshape(shape)


QUESTIONS = {
    1: Question(
        "the factor for two devices",
        2,
        [
            (1, "A sum of two means is not the mean of all."),
            (0.5, "Nothing divides by the number of devices: the sum is too large."),
            (64, "The losses are means already. How many of them are added?"),
        ],
    ),
    2: Task(
        "a function `to_book(arrays)`",
        to_book,
        [
            (list, "PyTorch stores dense weights transposed."),
            (lambda arrays: [a.T for a in arrays],
             "Only dense weights are transposed; convolutions are the same in both."),
            (lambda arrays: [a.reshape(a.shape[::-1]) if a.ndim == 2 else a
                             for a in arrays],
             "A reshape is not a transpose: it keeps the order of the numbers."),
        ],
        judge=compared(to_book, [
            ([like(3, 2)],), ([like(2, 2)],), ([like(3)],), ([like(1, 2, 3, 4)],),
            ([like(3), like(3, 2)],),
        ]),
    ),
    3: Task(
        "a function `weight(own, everyones)`",
        weight,
        [
            (lambda own, everyones: own / sum(everyones),
             "DDP divides by the number of processes as well."),
            (lambda own, everyones: 1.0,
             "The mean of means is the mean only if all shares are equal."),
            (lambda own, everyones: 1 / weight(own, everyones),
             "It is the other way round: more examples need a larger factor."),
        ],
        judge=compared(weight, [
            (own, shares)
            for shares in ([7], [32, 32], [48, 16], [10, 20, 60])
            for own in shares
        ]),
    ),
}
