"""Exercises of the chapter *Fitting a cost model*."""

import numpy

from d2l_ext.scale import fit

from ..question import Question, Task, compared


def halving(k, nbytes, cores):
    """Return (1, rounds, bytes): messages of N/2, N/4, …, and the same again."""
    messages = [nbytes / 2**i for i in range(1, k.bit_length())]
    return 1, 2 * len(messages), 2 * sum(messages) * max(1, k / cores)


def _changed(change):
    """Return `halving` with rounds and bytes that a learner might find."""

    def made(k, nbytes, cores):
        once, rounds, sent = halving(k, nbytes, cores)
        return once, *change(k, cores, rounds, sent)

    return made


def left_out(rows, seconds):
    """Return the error of each measurement, predicted by a fit to all others."""
    errors = []
    for i, (row, t) in enumerate(zip(rows, seconds)):
        others = [*rows[:i], *rows[i + 1 :]], [*seconds[:i], *seconds[i + 1 :]]
        errors.append(numpy.dot(row, fit.least_squares(*others).constants) / t - 1)
    return errors


def _error(of):
    """Return `left_out` with another definition of an error."""
    return lambda rows, seconds: [
        of(t * (error + 1), t) for error, t in zip(left_out(rows, seconds), seconds)]


QUESTIONS = {
    1: Question(
        "the number of bytes",
        562_500,
        [
            (62_500, "With that many bytes, half of the time is latency."),
            (625_000, "The latency is a tenth of the whole time, not of the rest."),
            (4_500_000, "That is the number of bits."),
        ],
        tolerance=0.001,
    ),
    2: Task(
        "a function `halving(k, nbytes, cores)`",
        halving,
        [
            (_changed(lambda k, cores, rounds, sent: (2 * (k - 1), sent)),
             "A ring needs that many rounds. How many times is the array halved?"),
            (_changed(lambda k, cores, rounds, sent: (rounds, sent / 2)),
             "Both halves of the rounds send bytes: first the parts to add, then "
             + "the sums."),
            (lambda k, nbytes, cores: halving(k, nbytes, cores=k),
             "All devices send in each round; with fewer cores they take turns."),
        ],
        judge=compared(halving, [
            (1, 1000, 1), (2, 1000, 2), (2, 1000, 4), (4, 1000, 4), (8, 1000, 2),
            (4, 10, 1), (8, 1000, 3),
        ]),
    ),
    3: Task(
        "a function `left_out(rows, seconds)`",
        left_out,
        [
            (lambda rows, seconds: fit.least_squares(rows, seconds).residuals,
             "Those are residuals: the fit has seen the row that it predicts."),
            (_error(lambda predicted, t: predicted - t),
             "That is the error in seconds. Divide it by the measured time."),
            (_error(lambda predicted, t: 1 - predicted / t),
             "The sign is reversed: too long a prediction has a positive error."),
        ],
        judge=compared(left_out, [
            ([(1, 10), (1, 100), (1, 1000)], [1.1, 2.0, 11.0]),
            ([(1, 10), (1, 100), (1, 1000)], [1.1, 2.0, 12.1]),
            ([(1, 10), (1, 10), (1, 100), (2, 1000)], [1.1, 1.3, 2.0, 12.1]),
            ([(1, 10), (1, 20), (1, 30)], [1.0, 3.0, 5.0]),
        ], tolerance=1e-6),
    ),
    4: Question(
        "the number of seconds per byte",
        (1 + 2 / 3 + 3 / 5) / (1 + 4 / 9 + 9 / 25),
        [
            (2, "That is the slope of the line with a negative latency."),
            (22 / 14, "That minimizes the absolute errors."),
        ],
        tolerance=0.01,
    ),
}
