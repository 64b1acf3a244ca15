"""Exercises of the chapter *One to 4,096 devices*."""

from d2l_ext.scale import failures

from ..question import Question, Task, by_cases, compared


def last_arrival(made, message):
    """Return when the last array has arrived; the link sends them in turn."""
    now = 0
    for ready in made:
        now = max(now, ready) + message
    return now


def best_interval(write, mtbf):
    """Return the seconds of work between checkpoints with the shortest total time."""
    young = failures.young(write, mtbf)
    return min((young * i / 100 for i in range(1, 301)),
               key=lambda t: failures.expected_seconds(1, t, write, 0, mtbf))


def _judge_best_interval(function, write, mtbf):
    found, best = float(function(write, mtbf)), failures.daly(write, mtbf)
    if not found > 0:
        return f"the interval is {found:g} seconds, but must be positive."
    over, least = (failures.expected_seconds(1, t, write, 0, mtbf)
                   for t in (found, best))
    if over <= 1.002 * least:
        return ""
    return (f"with an interval of {found:,.0f} s, training takes {over:.3f} times as "
            f"long as computing alone; {least:.3f} is possible.")


QUESTIONS = {
    1: Question(
        "the factor of Young's interval",
        10**0.5,
        [
            (10, "The interval grows with the square root of the time to write."),
            (10**-0.5, "Should one save more often when saving takes longer?"),
        ],
        tolerance=0.02,
    ),
    2: Question(
        "the number of images",
        10_163,
        [
            (10_168, "A device needs its millisecond, too."),
            (11_292, "Computing takes 0.9 of the whole step, exchange included."),
        ],
        tolerance=0.0002,
    ),
    3: Task(
        "a function `last_arrival(made, message)`",
        last_arrival,
        [
            (lambda made, message: made[-1] + message,
             "The link may still be busy with the previous array."),
            (lambda made, message: made[0] + message * len(made),
             "An array cannot leave before it is computed."),
            (lambda made, message: made[-1] + message * len(made),
             "That sends nothing until backward has ended."),
        ],
        judge=compared(last_arrival, [
            ([4], 1), ([0.2], 1), ([1, 2, 3], 0.5), ([1, 2, 3], 5), ([1, 9], 2),
            ([1, 6, 7], 2),
        ]),
    ),
    4: Task(
        "a function `best_interval(write, mtbf)`",
        best_interval,
        [
            (failures.young,
             "Young's interval is too long where writing takes a long time."),
            (lambda write, mtbf: mtbf / 2,
             "That loses a quarter of the work between failures: save far more often."),
            (lambda write, mtbf: (write * mtbf) ** 0.5,
             "A failure loses half of an interval on average, not the whole of it."),
        ],
        judge=by_cases(
            _judge_best_interval, "{} s to write, a failure every {:,} s",
            [(30, 40_000), (300, 2000), (600, 500), (300, 1_000_000), (2000, 500)],
        ),
    ),
}
