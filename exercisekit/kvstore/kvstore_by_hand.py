"""Exercises of the chapter *The store by hand*."""

import numpy

from ..question import Note, Question, Task, by_cases, shown


def mean_updater():
    counts = {}

    def update(key, pushed, stored):
        counts[key] = counts.get(key, 0) + 1
        stored += (pushed - stored) / counts[key]

    return update


def _judge_mean(function, pushes):
    update, held = function(), {"a": numpy.zeros(2), "b": numpy.zeros(2)}
    if not callable(update):
        return "it returns no function."
    for key, value in pushes:
        pushed = numpy.full(2, float(value))
        update(key, pushed, held[key])
        if (pushed != value).any():
            return "what was pushed is changed."
    for key, array in held.items():
        values = [value for to, value in pushes if to == key]
        mean = sum(values) / max(len(values), 1)
        if numpy.any(abs(array - mean) > 1e-6):
            return f"{key!r} is {array[0]:g}, and not {mean:g}."
    return ""


def worth_sending(gradient):
    """The rows that are not all zero, and their numbers."""
    rows = gradient.any(axis=1).nonzero()[0]
    return rows, gradient[rows]


def _judge_rows(function, gradient):
    given = numpy.array(kept := numpy.array(gradient, "float32"))
    rows, values = map(numpy.asarray, function(given))
    if (given != kept).any():
        return "it changes what it is given."
    if len(rows) != len(values):
        return f"{len(rows)} numbers of rows, and {len(values)} rows."
    rebuilt, least = numpy.zeros_like(kept), kept[kept.any(axis=1)].nbytes
    try:
        for row, value in zip(rows, values):
            rebuilt[int(row)] = value
    except (IndexError, TypeError, ValueError) as error:
        return f"{shown(rows.tolist())} are no row numbers of it ({error})."
    if wrong := (rebuilt != kept).sum():
        return f"rebuilt from rows {shown(rows.tolist())}, {wrong} numbers are wrong."
    if len(values) and values.nbytes > least:
        return f"{values.nbytes} bytes of values, and {least} are enough."
    return Note(f"{len(rows)} of {len(kept)} rows matter: {values.nbytes} bytes "
                f"({least} are enough).")


QUESTIONS = {
    1: Task(
        "a function that returns an updater",
        mean_updater,
        [
            ("+= (pushed - stored) / counts[key]", "+= pushed",
             "That is the sum of all pushes."),
            ("/ counts[key]", "/ 2",
             "Each push would weigh as much as all before it: a mean needs a count."),
            ("counts.get(key, 0) + 1", "1",
             "That is the last push: nothing is counted."),
            ("counts.get(key, 0)", "counts.get(key, 1)",
             "The count is one too many: what the store began with is no push."),
            ("counts[key] = counts.get(key, 0)",
             'counts[key] = counts["all"] = counts.get("all", 0)',
             "The count is of the pushes to all keys: each key needs its own."),
            ("stored += (", "stored = stored + (",
             "`stored = …` is another array. The store's own must change, in place."),
            ("():\n    counts = {}", "(counts={}):",
             "A second updater goes on with the counts of the first."),
            ("stored += (pushed - stored)",
             "pushed -= stored\n        stored += pushed",
             "The pushed array may still be somebody's gradient: leave it as it is."),
            ("    return update", "", "A function without `return` returns None."),
        ],
        judge=by_cases(_judge_mean, "Pushes of {}", [
            ([("a", 2)],), ([("a", 2), ("a", 4)],), ([("a", 2), ("a", 4), ("a", 9)],),
            ([("a", 6)],), ([("a", 2), ("b", 6)],), ([("a", 2), ("b", 6), ("a", 4)],),
            ([("a", 2), ("b", 6), ("a", 4), ("b", 8)],),
        ]),
    ),
    2: Question(
        "a list of two numbers of bytes: dense, row-sparse",
        [4_000_000, 64 * 408],
        [
            ([4_000_000, 64 * 400], "It also stores which rows it has."),
            ([4_000_000, 64 * 404], "The number of a row has 8 bytes."),
            ([1_000_000, 6_400], "These are numbers; each has 4 bytes."),
        ],
    ),
    3: Task(
        "a function that returns row numbers and rows",
        worth_sending,
        [
            (lambda gradient: (range(len(gradient)), gradient),
             "These are all rows, also those of zeros."),
            ("axis=1", "axis=0", "Axis 0 goes down the columns: rows are asked for."),
            (".any(axis=1)", ".all(axis=1)",
             "A row is worth sending if any of its numbers is not zero."),
            (".any(axis=1)", ".sum(axis=1)",
             "Numbers of a row may cancel each other out, and still be worth sending."),
            ("gradient.any(axis=1)", "(gradient > 0).any(axis=1)",
             "Numbers below zero are worth sending, too."),
            ("gradient.any(axis=1)", "(abs(gradient) > 1e-6).any(axis=1)",
             "Small is not zero: a small gradient is lost."),
            (".nonzero()[0]", "",
             "A mask has a truth for each row of the gradient: numbers are asked for."),
            ("gradient[rows]", "gradient[gradient != 0]",
             "Whole rows are asked for, and not the single numbers in them."),
            ("gradient[rows]", "gradient[: len(rows)]",
             "These are the first rows, and not those with these numbers."),
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
            (2**-10, "That is eps, the distance just above 1. Half is enough."),
            (2**-12, "That is the limit for steps down, below 1."),
            (2**-13, "A step of this size is rounded away."),
        ],
        tolerance=0.005,
    ),
}
