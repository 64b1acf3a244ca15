"""Exercises of the chapter *Data parallelism from scratch*."""

import numpy

from ..question import Question, Task, by_cases, compared


def whole_mean(means, sizes):
    """Return the mean over all examples, from the means of shards of these sizes."""
    return sum(size * mean for mean, size in zip(means, sizes)) / sum(sizes)


def shares(n, speeds):
    """Return each device's examples, in proportion to its speed, at least one."""
    sizes = [max(1, n * speed // sum(speeds)) for speed in speeds]
    for i in range(n - sum(sizes)):  # what was lost by rounding down
        sizes[i] += 1
    while sum(sizes) > n:  # slow devices got one example instead of none
        sizes[sizes.index(max(sizes))] -= 1
    return sizes


def _judge_shares(function, n, speeds):
    found = list(function(n, speeds))
    if any(b % 1 for b in found):
        return f"{found} has numbers that are not whole."
    if sum(found) != n:
        return f"{found} adds up to {sum(found)} examples instead of {n}."
    if min(found) < 1:
        return f"{found} leaves a device without an example."
    if any(abs(b - n * v / sum(speeds)) > 1 for b, v in zip(found, speeds)):
        return f"{found} is not in proportion to the speeds."
    return ""


QUESTIONS = {
    1: Question(
        "the number of images that each device gets",
        16,
        [
            (64, "The minibatch is divided; it does not grow with the devices."),
            (32, "That is the share on two devices."),
        ],
    ),
    2: Task(
        "a function `whole_mean(means, sizes)`",
        whole_mean,
        [
            (lambda means, sizes: sum(means) / len(means),
             "A mean of means is right only if all shards are equal."),
            (lambda means, sizes: sum(means) / sum(sizes),
             "Each mean has to be multiplied by the size of its shard."),
            (lambda means, sizes: sum(size * mean for mean, size in zip(means, sizes)),
             "That is the sum over the examples: divide by their number."),
        ],
        judge=compared(whole_mean, [
            ([5.0], [2]), ([1.0, 5.0], [3, 1]), ([2.0, 4.0], [2, 2]),
            ([1.0, 2.0, 4.0], [1, 5, 0]),
            ([numpy.array([1.0, 2.0]), numpy.array([5.0, 0.0])], [3, 1]),
        ], tolerance=1e-9),
    ),
    4: Task(
        "a function `shares(n, speeds)`",
        shares,
        [
            (lambda n, speeds: [n // len(speeds)] * len(speeds),
             "Each device gets the same number of examples, whatever its speed."),
            (lambda n, speeds: [int(n * v / sum(speeds)) for v in speeds],
             "Rounding down loses examples: distribute the rest."),
            (lambda n, speeds: [round(n * v / sum(speeds)) for v in speeds],
             "Numbers that are rounded one by one need not add up to n."),
        ],
        judge=by_cases(_judge_shares, "{} examples, speeds {}", [
            (5, [1]), (5, [1, 1]), (8, [99, 1]), (9, [10, 80, 1]), (10, [1] * 4),
            (11, [1] * 4), (100, [4, 2, 1]), (256, [3, 1]),
        ]),
    ),
}
