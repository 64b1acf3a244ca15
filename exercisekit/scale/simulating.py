"""Exercises of the chapter *Simulating a cluster*."""

from ..question import Question, Task, compared


def swap(ready, message):
    """When each device has the sum: partners wait for each other in each round."""
    strides = [2**i for i in range(len(ready).bit_length() - 1)]
    for stride in strides + strides[::-1]:
        ready = [max(t, ready[i ^ stride]) + message for i, t in enumerate(ready)]
    return ready


def backup(compute, spare):
    """Seconds of all steps, if none waits for its `spare` last gradients."""
    return float(sum(sorted(row)[len(row) - 1 - spare] for row in compute))


QUESTIONS = {
    1: Question(
        "the time of a step with equal shares; without the slow device it is 1",
        1.3,
        [
            (1.0375, "That is the mean. Everybody waits for the slowest."),
            (1.03, "That is with balanced shares."),
        ],
        tolerance=0.002,
    ),
    2: Question(
        "how many times as long a step is, with eight micro-batches",
        57 / 33,
        [
            (2, "That is the limit for very many micro-batches."),
            (1.25, "That is how much more work there is. Who waits for whom?"),
        ],
        tolerance=0.01,
    ),
    3: Task(
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
    4: Task(
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
}
