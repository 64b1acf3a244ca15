"""Answers to exercises of the part on scale."""

import numpy

from d2l_ext.scale import failures, fit

from .question import Question, Task, compared

# ---- fitting ----


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


# ---- simulating ----


def swap(ready, message):
    """When each device has the sum: partners wait for each other in each round."""
    strides = [2**i for i in range(len(ready).bit_length() - 1)]
    for stride in strides + strides[::-1]:
        ready = [max(t, ready[i ^ stride]) + message for i, t in enumerate(ready)]
    return ready


def backup(compute, spare):
    """Seconds of all steps, if none waits for its `spare` last gradients."""
    return float(sum(sorted(row)[len(row) - 1 - spare] for row in compute))


# ---- scale ----


def last_arrival(made, message):
    """When the last array has arrived, if one leaves after another."""
    now = 0
    for ready in made:
        now = max(now, ready) + message
    return now


def best_interval(write, mtbf):
    """Seconds of work between checkpoints for the least time in all."""
    return failures.daly(write, mtbf)


def judge_best_interval(function):
    for write, mtbf in ((30, 40_000), (300, 2000), (600, 500)):
        found, best = float(function(write, mtbf)), failures.daly(write, mtbf)
        case = f"{write} s to write, a failure in {mtbf:,} s:"
        if not found > 0:
            yield f"{case} an interval of {found:g} seconds."
            continue
        over, least = (failures.expected(1, t, write, 0, mtbf) for t in (found, best))
        if over > 1.002 * least:
            yield (
                f"{case} with {found:,.0f} s training takes {over:.3f} times as long "
                f"as without; {least:.3f} is possible."
            )


# ---- rosetta ----


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
    ("fitting", 3): Task(
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
        tolerance=1e-6,
        judge=compared(left_out, [
            ([(1, 10), (1, 100), (1, 1000)], seconds)
            for seconds in ([1.1, 2.0, 11.0], [1.1, 2.0, 12.1])
        ], tolerance=1e-6),
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
            ("strides + strides[::-1]", "strides",
             "There, but not back: half of the messages are missing."),
            ("max(t, ready[i ^ stride])", "t",
             "Nobody waits here: a message needs both partners."),
            ("strides + strides[::-1]", "strides[:1]",
             "That is one round. How many does it take until all have met?"),
            ("max(t, ready[i ^ stride])", "(t + ready[i ^ stride])",
             "Partners wait for the later of both; waits do not add up."),
            ("len(ready).bit_length() - 1", "len(ready).bit_length() - 2",
             "A stride is missing: k devices need log₂ k of them."),
            ("ready[i ^ stride]) + message", "ready[i ^ stride] + message)",
             "Both partners send; whoever was first gets its message later, too."),
        ],
        judge=compared(swap, [
            ([2], 1), ([1, 1], 1), ([0, 5], 1), ([0, 0, 0, 5], 1),
            ([3, 0, 1, 2, 0, 0, 7, 0], 0.5),
        ]),
    ),
    ("simulating", 4): Task(
        "a function `backup(compute, spare)`",
        backup,
        [
            ("[len(row) - 1 - spare]", "[len(row) - 1]",
             "That waits for everybody in each step."),
            ("[len(row) - 1 - spare]", "[spare]",
             "That counts from the fastest; the latest are the ones to drop."),
            ("[len(row) - 1 - spare]", "[len(row) - spare]",
             "One is waited for too many: `spare` of them are dropped."),
            ("sorted(row)", "row",
             "Which worker is late differs from step to step: sort each row."),
            ("float(sum(", "float(max(",
             "That is the longest step. All steps count."),
            ("sum(sorted(row)[len(row) - 1 - spare] for row in compute)",
             "sorted(map(sum, zip(*compute)))[len(compute[0]) - 1 - spare]",
             "That drops the same worker in all steps."),
        ],
        judge=compared(backup, [
            ([[1]], 0), ([[1, 2, 9], [4, 1, 1]], 0), ([[1, 2, 9], [4, 1, 1]], 1),
            ([[1, 2, 9], [4, 1, 1]], 2), ([[5, 1, 3, 2]], 2),
        ]),
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
            ("max(now, ready) + message", "ready + message",
             "The link may be busy still with the array before."),
            ("max(now, ready) + message", "now + message",
             "An array cannot leave before it is made."),
            ("    return now", "    return made[-1] + message * len(made)",
             "That sends nothing until backward has ended."),
            ("max(now, ready) + message", "max(now + message, ready)",
             "An array that has just been made still has to be sent."),
            ("    now = 0", "    now = message",
             "The link is free at the beginning."),
            ("    return now", "    return now - message",
             "That is when the last one leaves, and not when it arrives."),
        ],
        judge=compared(last_arrival, [
            ([4], 1), ([0.2], 1), ([1, 2, 3], 0.5), ([1, 2, 3], 5), ([1, 9], 2),
        ]),
    ),
    ("scale", 4): Task(
        "a function `best_interval(write, mtbf)`",
        best_interval,
        [
            ("failures.daly(write, mtbf)", "failures.young(write, mtbf)",
             "Young's interval is too long where writing takes long."),
            ("failures.daly(write, mtbf)", "mtbf / 2",
             "Half of what a failure costs is lost work: save far more often."),
            ("failures.daly(write, mtbf)", "failures.daly(write, mtbf) / 60",
             "Are these minutes? Seconds are asked."),
            ("failures.daly(write, mtbf)", "write",
             "As long as writing takes: with quick writes that saves too often."),
            ("failures.daly(write, mtbf)", "(write * mtbf) ** 0.5",
             "Half of an interval is lost with a failure, not the whole of it."),
            ("failures.daly(write, mtbf)",
             "failures.expected(1, failures.daly(write, mtbf), write, 0, mtbf)",
             "That is the least time. The interval that has it is asked."),
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
    ("rosetta", 3): Task(
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
