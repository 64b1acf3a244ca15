"""Exercises of the chapter *Buckets*."""

from collections import Counter
from itertools import combinations

import numpy

from d2l_ext.pipeline import buckets

from ..counts import counted
from ..question import Question, Task, by_cases


def time_first(rows, T):
    """Data and labels, (T, N) each, of sentences that are lists of numbers."""
    X, y = numpy.zeros((len(rows), T)), numpy.full((len(rows), T), -1.0)
    for n, row in enumerate(rows):
        X[n, : len(row) - 1], y[n, : len(row) - 1] = row[:-1], row[1:]
    return X.T, y.T


def _run_time_first(function, counts, rows, T):
    data, labels = function(*counts.keep(rows, T))
    arrays = {"data": numpy.asarray(data), "labels": numpy.asarray(labels)}
    shapes = {f"the shape of {what}": array.shape for what, array in arrays.items()}
    return {**shapes, **arrays}


def _empty(lengths, sizes):
    return sum(min(T for T in sizes if T >= n) - n for n in lengths)


def best_buckets(lengths, number):
    """Up to `number` buckets that leave the fewest empty places."""
    others = sorted(set(lengths) - {max(lengths)})
    choices = combinations(others, min(number - 1, len(others)))
    sizes = ([*choice, max(lengths)] for choice in choices)
    return min(sizes, key=lambda sizes: _empty(lengths, sizes))


def _most_frequent(lengths, number):
    others = Counter(n for n in lengths if n < max(lengths))
    return [*(n for n, _ in others.most_common(number - 1)), max(lengths)]


def _judge_best_buckets(function, lengths, number):
    sizes = list(function(list(lengths), number))
    if len(sizes) > number:
        return f"{sizes} are {len(sizes)} buckets."
    if max(sizes, default=0) < max(lengths):
        return f"{sizes} have no room for a sentence of {max(lengths)}."
    best = best_buckets(lengths, number)
    empty, least = (_empty(lengths, some) for some in (sizes, best))
    return f"{sizes} leave {empty} places empty, not {least}." if empty > least else ""


QUESTIONS = {
    1: Question(
        "how many times too small the gradient is",
        2,
        [
            (0.5, "It is half as large as it should be: how many times too small?"),
            (1, "How many places are there, and how many characters?"),
        ],
    ),
    2: Task(
        "a function `time_first(rows, T)`",
        time_first,
        [
            ("return X.T, y.T", "return X, y", "Time comes first: that is (n, T)."),
            ("return X.T, y.T", "return X.reshape(T, -1), y.reshape(T, -1)",
             "The shape is right, but reshape does not exchange axes."),
            ("= row[:-1], row[1:]", "= row[:-1], row[:-1]",
             "A label is the character that comes next."),
            ("= row[:-1], row[1:]", "= row[1:], row[:-1]",
             "The label comes after the data, not before."),
            ("X[n, : len(row) - 1], y[n, : len(row) - 1] = row[:-1]",
             "X[n, : len(row)], y[n, : len(row) - 1] = row[:T]",
             "The last character is only a label: nothing comes after it."),
            ("numpy.full((len(rows), T), -1.0)", "numpy.zeros((len(rows), T))",
             "A label of 0 is a character: places without one have -1."),
            ("numpy.zeros((len(rows), T))", "numpy.full((len(rows), T), -1.0)",
             "Data of places without a character are 0: -1 names none."),
            ("X[n, : len(row) - 1], y[n, : len(row) - 1]",
             "X[n, T + 1 - len(row) :], y[n, T + 1 - len(row) :]",
             "Sentences begin at the first time step. The rest is at the end."),
            ("return X.T, y.T", "return y.T, X.T", "First the data, then the labels."),
        ],
        judge=counted(time_first, _run_time_first, "time_first({}, {})", [
            ([[1, 2]], 1), ([[1, 2]], 2), ([[1, 2, 3, 4], [5, 6, 7]], 5),
            ([[3], [1, 2, 4]], 2),
        ]),
    ),
    3: Task(
        "a function `best_buckets(lengths, number)`",
        best_buckets,
        [
            (buckets.choose,
             "As many sentences in each is not the same as few empty places."),
            (_most_frequent,
             "The most frequent lengths fill their own buckets. What of the others?"),
            (lambda lengths, number: sorted({*lengths})[:number],
             "The longest sentence needs a bucket first of all."),
            ("min(number - 1, len(others))", "min(number, len(others))",
             "The longest has one of the buckets."),
            ("min(number - 1, len(others))", "number - 1",
             "There may be fewer lengths than buckets: then not all are used."),
            ("min(number - 1, len(others))", "min(1, number - 1, len(others))",
             "That uses two buckets, and more are allowed."),
            ("_empty(lengths, sizes))", "_empty({*lengths}, sizes))",
             "Each sentence counts: some lengths are there more than once."),
            ("_empty(lengths, sizes))", "sum(n not in sizes for n in lengths))",
             "That counts the sentences with empty places, and not the places."),
            (lambda lengths, number: [
                 -(-max(lengths) * (i + 1) // number) for i in range(number)
             ],
             "Even steps look away from where the sentences are."),
            ("return min(", "return max(", "The fewest empty places, not the most."),
        ],
        judge=by_cases(_judge_best_buckets, "best_buckets({}, {})", [
            ([5], 1), ([5], 4), ([3, 4, 8], 2), ([1, 1, 1, 1, 4, 5, 9], 2),
            ([1, 1, 1, 2, 9, 9, 10, 20], 3), ([4, 4, 1, 8, 8, 2, 7], 3),
        ]),
    ),
    4: Question(
        "whether it takes more memory: True or False",
        True,
        [(False, "What becomes of an array that is too large to share?")],
    ),
}
