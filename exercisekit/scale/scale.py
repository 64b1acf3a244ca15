"""Exercises of the chapter *One to 4,096 devices*."""

from d2l_ext.scale import failures

from ..question import Question, Task, by_cases, compared


def last_arrival(made, message):
    """When the last array has arrived, if one leaves after another."""
    now = 0
    for ready in made:
        now = max(now, ready) + message
    return now


def best_interval(write, mtbf):
    """Seconds of work between checkpoints for the least time in all."""
    return failures.daly(write, mtbf)


def _judge_best_interval(function, write, mtbf):
    found, best = float(function(write, mtbf)), failures.daly(write, mtbf)
    if not found > 0:
        return f"an interval of {found:g} seconds."
    over, least = (failures.expected(1, t, write, 0, mtbf) for t in (found, best))
    if over <= 1.002 * least:
        return ""
    return (f"with {found:,.0f} s training takes {over:.3f} times as long as without; "
            f"{least:.3f} is possible.")


QUESTIONS = {
    1: Question(
        "the factor of the best interval",
        10**0.5,
        [
            (10, "The time to write stands under a square root."),
            (10**-0.5, "Is it worth saving more often when it takes longer?"),
        ],
        tolerance=0.01,
    ),
    2: Question(
        "a number of images",
        10_163,
        [
            (10_168, "A device also needs its millisecond."),
            (11_292, "0.9 is the share of computing in the whole, not in the rest."),
        ],
        tolerance=0.0002,
    ),
    3: Task(
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
    4: Task(
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
        judge=by_cases(
            _judge_best_interval, "{} s to write, a failure in {:,} s",
            [(30, 40_000), (300, 2000), (600, 500)],
        ),
    ),
}
