"""Exercises of the chapter *The store by hand*."""

import numpy

from ..question import Note, Question, Task, by_cases, shown


def mean_updater():
    """Return an updater that keeps a running mean per key."""
    counts = {}

    def update(key, pushed, stored):
        counts[key] = counts.get(key, 0) + 1
        stored += (pushed - stored) / counts[key]

    return update


def _judge_mean(function, pushes):
    update, held = function(), {"a": numpy.full(2, 7.0), "b": numpy.full(2, 7.0)}
    if not callable(update):
        return "it does not return a function."
    for key, value in pushes:
        pushed = numpy.array([value, -value], float)
        update(key, pushed, held[key])
        if (pushed != (value, -value)).any():
            return "it changes the pushed array."
        pushed[:] = numpy.nan  # a store uses the array again
    for key, array in held.items():
        values = [value for to, value in pushes if to == key]
        mean = sum(values) / max(len(values), 1)
        right = [mean, -mean] if values else [7.0, 7.0]
        if not numpy.allclose(array, right):
            return f"{key!r} is {shown(array)} instead of {shown(right)}."
    return ""


def worth_sending(gradient):
    """Return the indices of the rows that are not all zero, and these rows."""
    rows = (gradient != 0).any(axis=1).nonzero()[0]
    return rows, gradient[rows]


def _judge_rows(function, gradient):
    given = numpy.array(kept := numpy.array(gradient, "float32"))
    rows, values = map(numpy.asarray, function(given))
    if (given != kept).any():
        return "it changes its argument."
    if rows.ndim != 1:
        return f"the indices have the shape {rows.shape}: return one number per row."
    if len(rows) != len(values):
        return f"it returns {len(rows)} indices, but {len(values)} rows."
    rebuilt, least = numpy.zeros_like(kept), kept[kept.any(axis=1)].nbytes
    try:
        for row, value in zip(rows, values):
            rebuilt[int(row)] = value
    except (IndexError, TypeError, ValueError) as error:
        return f"{shown(rows.tolist())} are not indices of its rows ({error})."
    if wrong := (rebuilt != kept).sum():
        return (f"rebuilt from rows {shown(rows.tolist())}, the gradient has wrong "
                f"numbers: {wrong}.")
    if len(values) and values.nbytes > least:
        return (f"the rows are {values.dtype} and have {values.nbytes} bytes, but "
                f"{least} are enough.")
    return Note(f"{len(rows)} of {len(kept)} rows are sent: {values.nbytes} bytes of "
                "numbers.")


def _sum_updater():
    def update(key, pushed, stored):
        stored += pushed

    return update


def _one_count_for_all():
    count = 0

    def update(key, pushed, stored):
        nonlocal count
        count += 1
        stored += (pushed - stored) / count

    return update


def _new_array():
    def update(key, pushed, stored):
        stored = stored + pushed

    return update


def _keeps_the_pushed():
    pushes = {}

    def update(key, pushed, stored):
        pushes.setdefault(key, []).append(pushed)
        stored[:] = sum(pushes[key]) / len(pushes[key])

    return update


def _columns(gradient):
    rows = (gradient != 0).any(axis=0).nonzero()[0]
    return rows, gradient[rows]


def _rows_by_sum(gradient):
    rows = gradient.sum(axis=1).nonzero()[0]
    return rows, gradient[rows]


def _mask(gradient):
    rows = (gradient != 0).any(axis=1)
    return rows, gradient[rows]


QUESTIONS = {
    1: Task(
        "a function `mean_updater()`",
        mean_updater,
        [
            (_sum_updater, "That is the sum of all pushes."),
            (_one_count_for_all,
             "The count includes pushes to other keys: each key needs its own count."),
            (_new_array,
             "The store's own array is as it was. Change it in place: `stored = …` "
             + "alone makes a new array."),
            (_keeps_the_pushed,
             "The store uses the pushed array again: keep no reference to it."),
        ],
        judge=by_cases(_judge_mean, "From [7, 7], pushes of [x, -x] for {}", [
            ([("a", 2)],), ([("a", 2), ("a", 4)],), ([("a", 2), ("a", 4), ("a", 9)],),
            ([("a", 6)],), ([("a", 2), ("b", 6)],), ([("a", 2), ("b", 6), ("a", 4)],),
            ([("a", 2), ("b", 6), ("a", 4), ("b", 8)],),
        ]),
    ),
    2: Question(
        "a list of two numbers of bytes: dense, row-sparse",
        [4_000_000, 64 * 408],
        [
            ([4_000_000, 64 * 400], "It also stores the index of each row."),
            ([4_000_000, 64 * 404], "The index of a row has 8 bytes."),
            ([1_000_000, 6_400], "These are numbers; each takes 4 bytes."),
        ],
    ),
    3: Task(
        "a function `worth_sending(gradient)`",
        worth_sending,
        [
            (_columns, "Axis 0 goes down the columns. Use axis 1."),
            (_rows_by_sum,
             "The numbers of a row may cancel out in a sum, but are worth sending."),
            (_mask, "This is a mask. Return the indices of the rows."),
        ],
        judge=by_cases(_judge_rows, "Gradient {}", [
            ([[0, 7]],), ([[0, 0], [0, 0]],), ([[0, 7], [0, 0], [3, 0]],),
            ([[1, 1, 0], [1, -1, 0], [0, 0, 0], [0, 0, -2], [0, 0, 0], [1e-9, 0, 0]],),
        ]),
    ),
    4: Question(
        "the size that a step must exceed",
        2**-11,
        [
            (2**-10,
             "That is eps, the distance just above 1. More than half of it is enough."),
            (2**-12, "That is the limit for steps down, below 1."),
            (2**-13, "A step of this size is rounded away."),
        ],
        tolerance=0.005,
    ),
}
