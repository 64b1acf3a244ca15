"""Exercises of the chapter *Out of step*."""

from math import pi, sin

from ..question import Note, Question, Task, by_cases


def may_begin(steps, worker, bound):
    """Whether the worker is at most `bound` ahead of the slowest after its step."""
    return steps[worker] + 1 - min(steps) <= bound


def _race(function, ticks, bound):
    """Steps of each after 40 ticks (None: it changes them), and the largest lead."""
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
        return f"somebody is {lead} steps ahead."
    if steps != most:
        return f"the steps are {steps}: {most} are possible."
    return Note(f"With ticks {ticks} and a bound of {bound}: {sum(steps)} steps "
                f"({sum(most)} are possible), {lead} ahead ({bound} are allowed).")


def largest_rate(delay):
    """Between rates at which the weight falls, and at which it grows."""
    low, high = 0.0, 2.5
    for _ in range(12):
        lr, w = (low + high) / 2, [8.0]
        for _ in range(400):
            w.append(w[-1] - lr * w[max(0, len(w) - 1 - delay)])
        arrives = max(map(abs, w[-100:])) < max(map(abs, w[-200:-100]))
        low, high = (lr, high) if arrives else (low, lr)
    return low


def _judge_rate(function, delay):
    right, found = 2 * sin(pi / (4 * delay + 2)), float(function(delay))
    way = "less" if found > right else "more"
    wrong = f"{found:.2f} is not the limit, it is {way}."
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
        "a function that returns whether the worker may begin",
        may_begin,
        [
            (lambda steps, worker, bound: True, "Nobody ever waits."),
            (" + 1", "", "When its step is done, it is one step farther."),
            ("<= bound", "< bound", "Just as far as the bound is allowed."),
            ("<= bound", "<= 1", "Any bound may be asked for, and not one step alone."),
            ("min(steps)", "sum(steps) / len(steps)",
             "What counts is the slowest, not the mean of all."),
            ("min(steps)", "steps[worker - 1]",
             "The slowest may be any of them, and not the neighbour."),
            ("return steps[worker] + 1", "steps[worker] += 1\n    return steps[worker]",
             "Ask what would be, without doing it: the list is the clock's own."),
        ],
        judge=by_cases(_judge_bound, "With ticks {} and a bound of {}", [
            ((1,), 1), ((1, 1, 5), 1), ((5, 2, 1), 2), ((1, 1, 5), 3),
        ]),
    ),
    3: Question(
        "a list of three times in seconds",
        [3 - 2 * 0.9**n for n in (1, 4, 16)],
        [
            ([1.2, 1.2, 1.2], "That is a worker's mean. All wait for the slowest."),
            ([1.2, 4.8, 19.2], "They compute at the same time: nothing adds up."),
            ([3, 3, 3], "With some luck all are quick. How often?"),
        ],
        tolerance=0.01,
    ),
    4: Task(
        "a function that returns a learning rate",
        largest_rate,
        [
            (lambda delay: 2 / (1 + delay),
             "Twice as old is not just half the rate. Let `descend` try it."),
            (lambda delay: 2.0, "That is the limit of gradients that are not late."),
            ("max(map(abs, w[-100:])) < max(map(abs, w[-200:-100]))", "min(w) > 0",
             "A weight that swings across 0 may arrive, too, in smaller swings."),
            ("len(w) - 1 - delay", "len(w) - 2 - delay",
             "These gradients are older by one than asked for."),
            ("2.5", "1.0", "The interval ends too early: the limit is not in it."),
            ("if arrives else", "if not arrives else",
             "Where the descent arrives, the limit is above that rate."),
            ("return low", "return round(low, 1)", "Two digits are asked for."),
            ("range(12)", "range(4)",
             "The interval is still too wide: halve it more often."),
        ],
        judge=by_cases(_judge_rate, "{} updates old", [(0,), (1,), (2,), (3,)]),
    ),
}
