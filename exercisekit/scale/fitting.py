"""Exercises of the chapter *Fitting a cost model*."""

import numpy

from d2l_ext.scale import fit

from ..question import Question, Task, compared


def halving(k, nbytes, cores):
    """(1, rounds, bytes): the messages are N/2, N/4, …, there and back."""
    messages = [nbytes / 2**i for i in range(1, k.bit_length())]
    return 1, 2 * len(messages), 2 * sum(messages) * max(1, k / cores)


def left_out(rows, seconds):
    """The error of each measurement, predicted by a fit to all others."""
    errors = []
    for i, (row, t) in enumerate(zip(rows, seconds)):
        others = [*rows[:i], *rows[i + 1 :]], [*seconds[:i], *seconds[i + 1 :]]
        errors.append(numpy.dot(row, fit.least_squares(*others).constants) / t - 1)
    return errors


QUESTIONS = {
    1: Question(
        "a number of bytes",
        562_500,
        [
            (62_500, "With as many, half of the time is latency."),
            (625_000, "Latency is a tenth of the whole time, not of the rest."),
            (4_500_000, "These are bits."),
        ],
        tolerance=0.001,
    ),
    2: Task(
        "a function `halving(k, nbytes, cores)`",
        halving,
        [
            ("2 * len(messages)", "2 * (k - 1)",
             "Those are the ring's rounds. How often can an array be halved?"),
            ("2 * sum(messages)", "sum(messages)",
             "The bytes go there and back: first the halves, then the sums."),
            ("2 * len(messages)", "len(messages)",
             "Each half is swapped twice: there as a part, back as a sum."),
            (" * max(1, k / cores)", "",
             "All devices send in each round; with fewer cores they take turns."),
            (" * max(1, k / cores)", " * k / cores",
             "More cores than devices do not make one message faster."),
            ("range(1, k.bit_length())", "range(k.bit_length() - 1)",
             "The first message is half of the array, not the whole."),
            ("nbytes / 2**i", "nbytes / k",
             "Parts of one size are the ring's; here each is half of the last."),
        ],
        judge=compared(halving, [
            (1, 1000, 1), (2, 1000, 2), (2, 1000, 4), (4, 1000, 4), (8, 1000, 2),
            (4, 10, 1),
        ]),
    ),
    3: Task(
        "a function `left_out(rows, seconds)`",
        left_out,
        [
            ("rows[:i], *rows[i + 1 :]], [*seconds[:i], *seconds[i + 1 :]]",
             "rows], [*seconds]",
             "Those are residuals: the fit has seen the row that it predicts."),
            ("/ t - 1", "- t",
             "That is the error in seconds. Relative is asked, so divide."),
            ("/ t - 1", "/ t",
             "That is predicted over measured: what is right gives 1, and not 0."),
            (", *rows[i + 1 :]], [*seconds[:i], *seconds[i + 1 :]]",
             "], [*seconds[:i]]",
             "The rows behind the one left out belong to the others, too."),
            ("numpy.dot(row, fit.least_squares(*others).constants) / t - 1",
             "1 - numpy.dot(row, fit.least_squares(*others).constants) / t",
             "The sign is turned round: predicted too much is a positive error."),
            ("numpy.dot(row, fit.least_squares(*others).constants) / t - 1",
             "t / numpy.dot(row, fit.least_squares(*others).constants) - 1",
             "It is relative to the measured time, not to the predicted one."),
        ],
        judge=compared(left_out, [
            ([(1, 10), (1, 100), (1, 1000)], seconds)
            for seconds in ([1.1, 2.0, 11.0], [1.1, 2.0, 12.1])
        ], tolerance=1e-6),
    ),
    4: Question(
        "a number of seconds per byte",
        (1 + 2 / 3 + 3 / 5) / (1 + 4 / 9 + 9 / 25),
        [
            (2, "That is the line with a negative latency."),
            (22 / 14, "That makes absolute errors small."),
        ],
        tolerance=0.01,
    ),
}
