"""Exercises of the chapter *Simulating a cluster*."""

from ..question import Question, Task, compared


def swap(ready, message):
    """Return the times at which devices have the sum; partners wait for each other."""
    strides = [2**i for i in range(len(ready).bit_length() - 1)]
    for stride in strides + strides[::-1]:
        ready = [max(t, ready[i ^ stride]) + message for i, t in enumerate(ready)]
    return ready


def _rounds(strides, later=max):
    """Return `swap` with other strides, and another start time of partners."""

    def swapped(ready, message):
        for stride in strides([2**i for i in range(len(ready).bit_length() - 1)]):
            ready = [later(t, ready[i ^ stride]) + message for i, t in enumerate(ready)]
        return ready

    return swapped


def _there_and_back(strides):
    return strides + strides[::-1]


def backup(compute, spare):
    """Return the seconds of all steps, if each drops its last `spare` gradients."""
    return float(sum(sorted(row)[len(row) - 1 - spare] for row in compute))


def _picks(one):
    """Return `backup` that waits for another gradient as the last one of each step."""
    return lambda compute, spare: float(sum(one(row, spare) for row in compute))


QUESTIONS = {
    1: Question(
        "the time with equal shares, in units of a step of eight equal devices",
        1.3,
        [
            (1.0375, "That is the mean. All devices wait for the slowest."),
            (1.03, "That is the time with balanced shares."),
        ],
        tolerance=0.002,
    ),
    2: Question(
        "the factor by which a step is longer, with eight micro-batches",
        57 / 33,
        [
            (2, "That is the limit for many micro-batches."),
            (1.25, "That is the factor of the work. Which stages wait?"),
        ],
        tolerance=0.01,
    ),
    3: Task(
        "a function `swap(ready, message)`",
        swap,
        [
            (_rounds(lambda strides: strides),
             "That is the first half; the sums still have to come back."),
            (_rounds(lambda strides: strides[:1]),
             "That is one round. How many until a gradient has reached all devices?"),
            (_rounds(_there_and_back, later=lambda own, partner: own),
             "No device waits here, but a swap needs both partners."),
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
            (_picks(lambda row, spare: max(row)),
             "That waits for all workers in each step."),
            (_picks(lambda row, spare: sorted(row)[spare]),
             "That counts from the fastest; drop the slowest ones."),
            (_picks(lambda row, spare: row[len(row) - 1 - spare]),
             "Another worker may be late in each step: sort each row."),
        ],
        judge=compared(backup, [
            ([[1]], 0), ([[1, 2, 9], [4, 1, 1]], 0), ([[1, 2, 9], [4, 1, 1]], 1),
            ([[1, 2, 9], [4, 1, 1]], 2), ([[5, 1, 3, 2]], 2),
        ]),
    ),
}
