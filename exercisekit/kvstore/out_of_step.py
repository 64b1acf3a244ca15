"""Exercises of the chapter *Out of step*."""

from math import pi, sin

from ..question import Note, Question, Task, by_cases


def may_begin(steps, worker, bound):
    """Return whether the worker is at most `bound` steps ahead of the slowest."""
    return steps[worker] + 1 - min(steps) <= bound


def _race(function, ticks, bound):
    """Return the steps of each worker after 40 ticks, and the largest lead."""
    k = len(ticks)
    steps, ends, lead = [0] * k, [None] * k, 0
    for tick in range(41):
        for worker in range(k):
            if ends[worker] == tick:
                steps[worker], ends[worker] = steps[worker] + 1, None
        lead = max(lead, max(steps) - min(steps))
        for worker in range(k):
            if ends[worker] is None:
                given = list(steps)
                if function(given, worker, bound):
                    ends[worker] = tick + ticks[worker]
                if given != steps:
                    return None, 0
    return steps, lead


def _judge_bound(function, ticks, bound):
    (steps, lead), (most, _) = (_race(f, ticks, bound) for f in (function, may_begin))
    if steps is None:
        return "it changes the steps that it is given."
    if lead > bound:
        return f"a worker is {lead} steps ahead of the slowest."
    if steps != most:
        return f"the workers complete {steps} steps, but {most} are possible."
    return Note(f"With ticks {ticks} and a bound of {bound}: {sum(steps)} steps, and "
                f"a lead of at most {lead}.")


def _converges(delay, lr):
    w = [8.0]
    for _ in range(400):
        w.append(w[-1] - lr * w[max(0, len(w) - 1 - delay)])
    sizes = [abs(x) for x in w]
    return max(sizes[-100:]) < max(sizes[-200:-100])


def largest_rate(delay):
    """Halve an interval between a rate that converges and one that does not."""
    low, high = 0.0, 2.5
    for _ in range(12):
        lr = (low + high) / 2
        if _converges(delay, lr):
            low = lr
        else:
            high = lr
    return low


def _judge_rate(function, delay):
    right, found = 2 * sin(pi / (4 * delay + 2)), float(function(delay))
    way = "smaller" if found > right else "larger"
    wrong = f"the limit is {way} than {found:.2f}."
    return "" if abs(found - right) < 0.02 else wrong


QUESTIONS = {
    1: Question(
        "the staleness with four workers",
        3,
        [
            (4, "A worker's own update does not count."),
            (0, "The others push between its pull and its push."),
            (1, "Each of the others pushes once."),
        ],
    ),
    2: Task(
        "a function `may_begin(steps, worker, bound)`",
        may_begin,
        [
            (lambda steps, worker, bound: steps[worker] - min(steps) <= bound,
             "The step itself adds one to the lead of the worker."),
            (lambda steps, worker, bound: steps[worker] + 1 - min(steps) < bound,
             "A lead of exactly the bound is allowed."),
            (lambda steps, worker, bound:
             steps[worker] + 1 - sum(steps) / len(steps) <= bound,
             "The lead is measured from the slowest, not from the mean."),
        ],
        judge=by_cases(_judge_bound, "With ticks {} and a bound of {}", [
            ((1,), 1), ((1, 1, 5), 1), ((5, 2, 1), 2), ((1, 1, 5), 3),
        ]),
    ),
    3: Question(
        "a list of three times in seconds",
        [3 - 2 * 0.9**n for n in (1, 4, 16)],
        [
            ([1.2, 1.2, 1.2], "That is one worker's mean. All wait for the slowest."),
            ([1.2, 4.8, 19.2], "They compute at the same time: do not add times."),
            ([3, 3, 3], "Sometimes all workers are fast. How often?"),
        ],
        tolerance=0.02,
    ),
    4: Task(
        "a function `largest_rate(delay)`",
        largest_rate,
        [
            (lambda delay: 2 / (1 + delay),
             "The limit is not 2 / (1 + delay). Find it with `descend`."),
            (lambda delay: 2.0, "That is the limit for gradients without a delay."),
            (lambda delay: round(largest_rate(delay), 1),
             "Two decimal places are needed."),
        ],
        judge=by_cases(_judge_rate, "{} updates old", [(0,), (1,), (2,), (3,)]),
    ),
}
