"""Exercises of the chapter *Data parallelism from scratch*."""

from ..question import Question, Task, by_cases, compared


def whole_mean(means, sizes):
    """The mean over all examples, from those of shards of the given sizes."""
    return sum(size * mean for mean, size in zip(means, sizes)) / sum(sizes)


def shares(n, speeds):
    """Examples for each device, in proportion to its speed, and at least one."""
    sizes = [max(1, int(n * speed / sum(speeds))) for speed in speeds]
    while sum(sizes) != n:
        missing = 1 if sum(sizes) < n else -1
        at = sizes.index(min(sizes) if missing > 0 else max(sizes))
        sizes[at] += missing
    return sizes


def _judge_shares(function, n, speeds):
    found = list(function(n, speeds))
    if sum(found) != n:
        return f"{found} are {sum(found)} examples."
    if min(found) < 1:
        return f"{found} leave a device without an example."
    if any(abs(b - n * v / sum(speeds)) > 1 for b, v in zip(found, speeds)):
        return f"{found} are not in proportion."
    return ""


QUESTIONS = {
    1: Question(
        "the number of images that each device gets",
        16,
        [
            (64, "The minibatch is divided, and does not grow with the devices."),
            (32, "That is the share on two devices."),
        ],
    ),
    2: Task(
        "a function `whole_mean(means, sizes)`",
        whole_mean,
        [
            ("size * mean for", "mean for",
             "The sizes do not weigh the means: a mean of sums needs sums."),
            ("sum(size * mean for mean, size in zip(means, sizes)) / sum(sizes)",
             "sum(means) / len(means)",
             "A mean of means is right only where all shards are equal."),
            (" / sum(sizes)", "",
             "That is the sum over the examples: divide by how many there are."),
            (" / sum(sizes)", " / len(sizes)",
             "That divides by the number of shards, and not of examples."),
            ("zip(means, sizes)", "zip(means, sizes[::-1])",
             "Each mean goes with the size of its own shard."),
        ],
        judge=compared(whole_mean, [
            ([5.0], [2]), ([1.0, 5.0], [3, 1]), ([2.0, 4.0], [2, 2]),
            ([1.0, 2.0, 4.0], [1, 5, 0]),
        ], tolerance=1e-9),
    ),
    4: Task(
        "a function `shares(n, speeds)`",
        shares,
        [
            (lambda n, speeds: [n // len(speeds)] * len(speeds),
             "Each device gets as many as the others, whatever its speed."),
            (lambda n, speeds: [int(n * v / sum(speeds)) for v in speeds],
             "Rounding down loses examples: hand out what is left over."),
            (lambda n, speeds: [round(n * v / sum(speeds)) for v in speeds],
             "Numbers that are rounded one by one need not add up to n."),
            (lambda n, speeds: [max(1, int(n * v / sum(speeds))) for v in speeds],
             "With at least one example for each, the sum is not n any more: correct "
             + "it, up or down."),
            (lambda n, speeds: [
                 *(n * v // sum(speeds) for v in speeds[:-1]),
                 n - sum(n * v // sum(speeds) for v in speeds[:-1]),
             ],
             "The last device gets all that is left over. Give one example each to "
             + "several."),
            (lambda n, speeds: [
                 n - sum(n * v // sum(speeds) for v in speeds[1:]),
                 *(n * v // sum(speeds) for v in speeds[1:]),
             ],
             "The first device gets all that is left over, and a slow one may go "
             + "without any."),
            (lambda n, speeds: shares(n, [1 / v for v in speeds]),
             "The slow ones get most: that is in proportion to the time of an "
             + "example, and not to the speed."),
        ],
        judge=by_cases(_judge_shares, "{} examples, speeds {}", [
            (5, [1]), (5, [1, 1]), (8, [99, 1]), (11, [1] * 4), (100, [4, 2, 1]),
            (256, [3, 1]),
        ]),
    ),
}
