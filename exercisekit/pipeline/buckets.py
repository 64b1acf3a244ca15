"""Exercises of the chapter *Buckets*."""

from itertools import combinations

import numpy

from d2l_ext.pipeline import buckets

from ..counts import counted
from ..question import Question, Task, as_python, by_cases


def time_first(rows, T):
    """Return data and labels, (T, N) each, of sentences, lists of numbers."""
    X, y = numpy.zeros((len(rows), T)), numpy.full((len(rows), T), -1.0)
    for n, row in enumerate(rows):
        X[n, : len(row) - 1], y[n, : len(row) - 1] = row[:-1], row[1:]
    return X.T, y.T


def _labels_are_data(rows, T):
    X, y = time_first(rows, T)
    return X, numpy.where(y == -1, -1, X)


def _labels_of_zero(rows, T):
    X, y = time_first(rows, T)
    return X, numpy.where(y == -1, 0, y)


def _run_time_first(function, counts, rows, T):
    data, labels = function(*counts.keep(rows, T))
    arrays = {"data": numpy.asarray(as_python(data)),
              "labels": numpy.asarray(as_python(labels))}
    shapes = {f"the shape of {what}": array.shape for what, array in arrays.items()}
    return {**shapes, **arrays}


def _empty(lengths, sizes):
    return sum(min(T for T in sizes if T >= n) - n for n in lengths)


def best_buckets(lengths, number):
    """Return up to `number` buckets with the least padding."""
    others = sorted(set(lengths) - {max(lengths)})
    choices = combinations(others, min(number - 1, len(others)))
    sizes = ([*choice, max(lengths)] for choice in choices)
    return min(sizes, key=lambda sizes: _empty(lengths, sizes))


def _judge_best_buckets(function, lengths, number):
    sizes = list(function(list(lengths), number))
    if len(sizes) > number:
        return f"{sizes} has {len(sizes)} buckets, more than {number}."
    if max(sizes, default=0) < max(lengths):
        return f"{sizes} has no room for a sentence of length {max(lengths)}."
    best = best_buckets(lengths, number)
    empty, least = (_empty(lengths, some) for some in (sizes, best))
    if empty > least:
        return f"{sizes} leaves {empty} time steps of padding instead of {least}."
    return ""


QUESTIONS = {
    1: Question(
        "the factor by which the gradient is too small",
        2,
        [
            (0.5, "It is half as large as it should be: what is the factor?"),
            (1, "How many labels are there, with padding and without?"),
        ],
    ),
    2: Task(
        "a function `time_first(rows, T)`",
        time_first,
        [
            (lambda rows, T:
             tuple(array.T.reshape(T, -1) for array in time_first(rows, T)),
             "The shape is right, but reshape does not exchange axes."),
            (_labels_are_data, "A label is the character that comes next."),
            (_labels_of_zero, "A label of 0 is a character: padding has -1."),
        ],
        judge=counted(time_first, _run_time_first, "time_first({}, {})", [
            ([[1, 2]], 1), ([[1, 2]], 2), ([[1, 2, 3, 4], [5, 6, 7]], 5),
            ([[3], [1, 2, 4]], 2), ([[0, 1, 0, 2]], 4),
        ]),
    ),
    3: Task(
        "a function `best_buckets(lengths, number)`",
        best_buckets,
        [
            (buckets.choose_lengths,
             "Equal numbers of sentences do not give the least padding."),
            (lambda lengths, number: sorted({*lengths})[:number],
             "The longest sentence needs a bucket first of all."),
            (lambda lengths, number: best_buckets([*{*lengths}], number),
             "Each sentence counts: some lengths occur more than once."),
        ],
        judge=by_cases(_judge_best_buckets, "best_buckets({}, {})", [
            ([5], 1), ([5], 4), ([3, 4, 8], 2), ([1, 1, 1, 1, 4, 5, 9], 2),
            ([1, 1, 1, 2, 9, 9, 10, 20], 3), ([4, 4, 1, 8, 8, 2, 7], 3),
            ([5, 7, 6, 5, 9, 1], 3),
        ]),
    ),
    4: Question(
        "whether it takes more memory: True or False",
        True,
        [(False, "What becomes of an array that is too large to share?")],
    ),
}
