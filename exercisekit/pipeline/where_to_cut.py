"""Exercises of the chapter *Where to cut*."""

from itertools import combinations_with_replacement

from d2l_ext.pipeline.partition import device_times

from ..question import Question, Task, by_cases, compared


def even_cut(times, k):
    """Return a cut into k runs, some perhaps empty, with the smallest bottleneck."""
    found, n = [], len(times)
    for cuts in combinations_with_replacement(range(n + 1), k - 1):
        ends = [0, *cuts, n]
        runs = [times[a:b] for a, b in zip(ends, ends[1:])]
        placement = [device for device, run in enumerate(runs) for _ in run]
        found.append((max(map(sum, runs)), placement))
    return min(found)[1]


def _goes_on_at_the_mean(times, k):
    placement, device, so_far = [], 0, 0
    for time in times:
        if so_far >= sum(times) / k and device < k - 1:
            device, so_far = device + 1, 0
        placement.append(device)
        so_far += time
    return placement


def _judge_even_cut(function, times, k):
    placement = list(function(list(times), k))
    said = f"it returns {placement}:"
    if len(placement) != len(times):
        return f"{said} the number of layers is {len(times)}."
    if placement != sorted(placement):
        return f"{said} the device numbers decrease."
    if not {*placement} <= {*range(k)}:
        return f"{said} the devices are 0 to {k - 1}."
    worst, least = (
        max(device_times(cut, times, k)) for cut in (placement, even_cut(times, k))
    )
    found = f"{said} the bottleneck is {worst}; {least} is possible."
    return found if worst > least else ""


def stepwise_slots(placement, work, T):
    """Return the slots of a forward pass, time step by time step in all layers."""
    free = [0] * (1 + max(placement))
    for _ in range(T):
        ready = 0
        for device, slots in zip(placement, work):
            ready = free[device] = max(ready, free[device]) + slots
    return ready


def _whole_decoder(placement, work, T):
    below = stepwise_slots(placement[:-1], work[:-1], T) if work[1:] else 0
    return below + T * work[-1]


QUESTIONS = {
    1: Question(
        "the new time of a step divided by the old one, for T = 12",
        6 * 14 / (9 * 13),
        [
            (2 / 3, "Three devices take longer to fill and to empty."),
            (1 / 3, "Two devices shared the work before, not one."),
            (9 * 13 / (6 * 14), "Divide the new time by the old one."),
        ],
        tolerance=0.01,
    ),
    2: Question(
        "the number of words, with H = 256",
        8 * 256,
        [
            (4 * 256, "A layer has a matrix for its input and one for its state."),
            (2 * 256, "Each of the two matrices has 4H rows."),
            (8, "That is the factor of H."),
        ],
        tolerance=0.001,
    ),
    3: Task(
        "a function `even_cut(times, k)`",
        even_cut,
        [
            (lambda times, k: even_cut([1] * len(times), k),
             "That balances the number of layers, and not their times."),
            (lambda times, k: [i % k for i in range(len(times))],
             "Consecutive layers stay together: do not alternate."),
            (_goes_on_at_the_mean,
             "Moving on only when a device has its mean share can give it far more."),
        ],
        judge=by_cases(_judge_even_cut, "even_cut({}, {})", [
            ([7], 1), ([1, 2], 2), ([7, 1], 4), ([3, 1, 1, 1], 2),
            ([1.5, 1.0, 0.5, 1.5], 2), ([1, 1, 1, 9], 3), ([2, 3, 5, 7, 4], 3),
            ([4, 1, 1, 5, 2, 2], 3), ([2, 3, 3, 3, 3, 2], 4),
        ]),
    ),
    4: Task(
        "a function `stepwise_slots(placement, work, T)`",
        stepwise_slots,
        [
            (_whole_decoder, "The last layer still waits for all time steps."),
            (lambda placement, work, T: T * max(device_times(placement, work)),
             "A layer waits for the layer below, in the same time step."),
            (lambda placement, work, T: sum(work),
             "A device runs one layer at a time: is it free when a layer starts?"),
        ],
        judge=compared(stepwise_slots, [
            ((0,), [2], 2), ((1, 1), [1, 2], 2), ((0, 1), [1, 1], 3),
            ((0, 1), [1, 2], 3),
            *((placement, [1, 2, 3], 4) for placement in (
                (0, 0, 0), (0, 1, 1), (0, 0, 1), (0, 1, 0), (0, 1, 2)
            )),
        ]),
    ),
}
