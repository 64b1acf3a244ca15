"""Answers to exercises of the part on scale."""

from math import sqrt

import numpy

from d2l_ext.scale import failures, fit

from .question import Question, Task


def near(found, right):
    return numpy.shape(found) == numpy.shape(right) and numpy.allclose(found, right)


# ---- fitting ----


def halving(k, nbytes, cores):
    """(1, rounds, bytes): the messages are N/2, N/4, …, there and back."""
    messages = [nbytes / 2**i for i in range(1, k.bit_length())]
    return 1, 2 * len(messages), 2 * sum(messages) * max(1, k / cores)


def judge_halving(function):
    for k, cores in ((2, 2), (4, 4), (8, 8), (8, 2), (4, 1)):
        found, right = function(k, 1000, cores), halving(k, 1000, cores)
        if not near(found, right):
            return f"{k} devices, {cores} cores, 1000 bytes: {found}, and not {right}."
    return ""


def left_out(rows, seconds):
    """The error of each measurement, predicted by a fit to all others."""
    errors = []
    for i, (row, t) in enumerate(zip(rows, seconds)):
        others = [*rows[:i], *rows[i + 1 :]], [*seconds[:i], *seconds[i + 1 :]]
        errors.append(numpy.dot(row, fit.least_squares(*others).constants) / t - 1)
    return errors


def judge_left_out(function):
    rows = [(1, 10), (1, 100), (1, 1000)]
    for seconds in ([1.1, 2.0, 11.0], [1.1, 2.0, 12.1]):
        found, right = function(rows, seconds), left_out(rows, seconds)
        if not near(found, right):
            said = [f"{x:+.2f}" for x in right]
            return f"Times {seconds} of 10, 100, 1000 bytes: it should be {said}."
    return ""


# ---- simulating ----


def swap(ready, message):
    """When each device has the sum: partners wait for each other in each round."""
    strides = [2**i for i in range(len(ready).bit_length() - 1)]
    for stride in strides + strides[::-1]:
        ready = [max(t, ready[i ^ stride]) + message for i, t in enumerate(ready)]
    return ready


def judge_swap(function):
    for ready in ([1, 1], [0, 0, 0, 5], [3, 0, 1, 2, 0, 0, 7, 0]):
        found, right = list(function(list(ready), 1)), swap(ready, 1)
        if not near(found, right):
            return f"Ready at {ready}, messages of 1: {found}, and not {right}."
    return ""


def backup(compute, spare):
    """Seconds of all steps, if none waits for its `spare` last gradients."""
    return float(sum(sorted(row)[len(row) - 1 - spare] for row in compute))


def judge_backup(function):
    compute = [[1, 2, 9], [4, 1, 1]]
    for spare in (0, 1, 2):
        found, right = (
            function([list(row) for row in compute], spare),
            backup(compute, spare),
        )
        if not near(found, right):
            return f"{compute} with {spare} to spare: {found}, and not {right:g}."
    return ""


# ---- scale ----


def last_arrival(made, message):
    """When the last array has arrived, if one leaves after another."""
    now = 0
    for ready in made:
        now = max(now, ready) + message
    return now


def judge_last_arrival(function):
    for made, message in (([1, 2, 3], 0.5), ([1, 2, 3], 5), ([1, 9], 2), ([4], 1)):
        found, right = function(list(made), message), last_arrival(made, message)
        if not near(found, right):
            return f"Made at {made}, messages of {message}: {found}, and not {right}."
    return ""


def best_interval(write, mtbf):
    """Seconds of work between checkpoints for the least time in all."""
    return failures.daly(write, mtbf)


def judge_best_interval(function):
    for write, mtbf in ((30, 40_000), (300, 2000), (600, 500)):
        found, best = float(function(write, mtbf)), failures.daly(write, mtbf)
        if not found > 0:
            return f"An interval of {found:g} seconds."
        over, least = (failures.expected(1, t, write, 0, mtbf) for t in (found, best))
        if over > 1.002 * least:
            return (
                f"{write} s to write, a failure in {mtbf:,} s: with {found:,.0f} s "
                f"training takes {over:.3f} times as long as without; "
                f"{least:.3f} is possible."
            )
    return ""


# ---- rosetta ----


def weight(own, everyones):
    """What a process of DDP must multiply its mean loss by."""
    return own * len(everyones) / sum(everyones)


def judge_weight(function):
    for shares in ([32, 32], [48, 16], [10, 20, 30]):
        found = [function(own, list(shares)) for own in shares]
        right = [weight(own, shares) for own in shares]
        if not near(found, right):
            return f"Shares of {shares}: {found}, and not {right}."
    return ""


def to_book(arrays):
    """Dense weights, PyTorch's (out, in), as (in, out); all others as they are."""
    return [a.T if a.ndim == 2 else a for a in arrays]


def judge_to_book(function):
    arrays = [numpy.arange(n).reshape(s) for n, s in
              ((6, (3, 2)), (4, (2, 2)), (3, (3,)), (24, (1, 2, 3, 4)))]  # fmt: skip
    for found, right, was in zip(function(arrays), to_book(arrays), arrays):
        if numpy.shape(found) != right.shape:
            return f"{was.shape} becomes {numpy.shape(found)}, and not {right.shape}."
        if (found != right).any():
            return f"{was.tolist()} becomes {numpy.asarray(found).tolist()}."
    return ""


QUESTIONS = {
    ("fitting", 1): Question(
        "a number of bytes",
        562_500,
        [
            (62_500, "With as many, half of the time is latency."),
            (625_000, "Latency is a tenth of the whole time, not of the rest."),
            (4_500_000, "These are bits."),
        ],
        tolerance=0.001,
    ),
    ("fitting", 2): Task(
        "a function `halving(k, nbytes, cores)`",
        halving,
        [
            (lambda k, nbytes, cores: (1, 2 * (k - 1), 2 * (k - 1) / k * nbytes),
             ("4 devices, 4 cores, 1000 bytes: (1, 6, 1500.0), and not "
              "(1, 4, 1500.0).")),
            (lambda k, nbytes, cores: halving(k, nbytes, k),
             ("8 devices, 2 cores, 1000 bytes: (1, 6, 1750.0), and not "
              "(1, 6, 7000.0).")),
        ],
        judge=judge_halving,
    ),
    ("fitting", 3): Task(
        "a function `left_out(rows, seconds)`",
        left_out,
        [
            (lambda rows, seconds: fit.least_squares(rows, seconds).residuals,
             ("Times [1.1, 2.0, 12.1] of 10, 100, 1000 bytes: it should be "
              "['-0.10', '+0.05', '-0.09'].")),
        ],
        judge=judge_left_out,
    ),
    ("fitting", 4): Question(
        "a number of seconds per byte",
        (1 + 2 / 3 + 3 / 5) / (1 + 4 / 9 + 9 / 25),
        [
            (2, "That is the line with a negative latency."),
            (22 / 14, "That makes absolute errors small."),
        ],
        tolerance=0.01,
    ),
    ("simulating", 1): Question(
        "the time of a step with equal shares; without the slow device it is 1",
        1.3,
        [
            (1.0375, "That is the mean. Everybody waits for the slowest."),
            (1.03, "That is with balanced shares."),
        ],
        tolerance=0.002,
    ),
    ("simulating", 2): Question(
        "how many times as long a step is, with eight micro-batches",
        57 / 33,
        [
            (2, "That is the limit for very many micro-batches."),
            (1.25, "That is how much more work there is. Who waits for whom?"),
        ],
        tolerance=0.01,
    ),
    ("simulating", 3): Task(
        "a function `swap(ready, message)`",
        swap,
        [
            (lambda ready, message: [max(ready) + 2 * message] * len(ready),
             ("Ready at [0, 0, 0, 5], messages of 1: [7, 7, 7, 7], and not "
              "[9, 9, 9, 9].")),
            (lambda ready, message: [
                 t + 2 * message * (len(ready).bit_length() - 1) for t in ready
             ],
             ("Ready at [0, 0, 0, 5], messages of 1: [4, 4, 4, 9], and not "
              "[9, 9, 9, 9].")),
        ],
        judge=judge_swap,
    ),
    ("simulating", 4): Task(
        "a function `backup(compute, spare)`",
        backup,
        [
            (lambda compute, spare: float(sum(map(max, compute))),
             "[[1, 2, 9], [4, 1, 1]] with 1 to spare: 13.0, and not 3."),
            (lambda compute, spare: backup(compute, 0) - spare,
             "[[1, 2, 9], [4, 1, 1]] with 1 to spare: 12.0, and not 3."),
        ],
        judge=judge_backup,
    ),
    ("scale", 1): Question(
        "the factor of the best interval",
        10**0.5,
        [
            (10, "The time to write stands under a square root."),
            (10**-0.5, "Is it worth saving more often when it takes longer?"),
        ],
        tolerance=0.01,
    ),
    ("scale", 2): Question(
        "a number of images",
        10_163,
        [
            (10_168, "A device also needs its millisecond."),
            (11_292, "0.9 is the share of computing in the whole, not in the rest."),
        ],
        tolerance=0.0002,
    ),
    ("scale", 3): Task(
        "a function `last_arrival(made, message)`",
        last_arrival,
        [
            (lambda made, message: made[-1] + message,
             "Made at [1, 2, 3], messages of 5: 8, and not 16."),
            (lambda made, message: made[-1] + message * len(made),
             "Made at [1, 2, 3], messages of 0.5: 4.5, and not 3.5."),
        ],
        judge=judge_last_arrival,
    ),
    ("scale", 4): Task(
        "a function `best_interval(write, mtbf)`",
        best_interval,
        [
            (lambda write, mtbf: sqrt(2 * write * mtbf),
             ("300 s to write, a failure in 2,000 s: with 1,095 s training takes "
              "1.842 times as long as without; 1.827 is possible.")),
            (lambda write, mtbf: mtbf / 2,
             ("30 s to write, a failure in 40,000 s: with 20,000 s training "
              "takes 1.300 times as long as without; 1.040 is possible.")),
        ],
        judge=judge_best_interval,
    ),
    ("rosetta", 1): Question(
        "the factor for two devices",
        2,
        [
            (1, "A sum of two means is not the mean of all."),
            (0.5, "Nobody divides by the number of devices, so it is too large."),
            (64, "The losses are means already. How many are added?"),
        ],
    ),
    ("rosetta", 2): Task(
        "a function `to_book(arrays)`",
        to_book,
        [
            (lambda arrays: arrays, "(3, 2) becomes (3, 2), and not (2, 3)."),
            (lambda arrays: [a.T for a in arrays],
             "(1, 2, 3, 4) becomes (4, 3, 2, 1), and not (1, 2, 3, 4)."),
            (lambda arrays: [
                 a.T if a.ndim == 2 and a.shape != a.T.shape else a for a in arrays
             ],
             "[[0, 1], [2, 3]] becomes [[0, 1], [2, 3]]."),
        ],
        judge=judge_to_book,
    ),
    ("rosetta", 3): Task(
        "a function `weight(own, everyones)`",
        weight,
        [
            (lambda own, everyones: own / sum(everyones),
             "Shares of [32, 32]: [0.5, 0.5], and not [1.0, 1.0]."),
            (lambda own, everyones: 1.0,
             "Shares of [48, 16]: [1.0, 1.0], and not [1.5, 0.5]."),
        ],
        judge=judge_weight,
    ),
}
