"""Exercises of the chapter *Exchanging less often*."""

from itertools import chain
from math import ceil

from ..question import Question, Task, by_cases, compared, shown


def fewest(step, exchange, share):
    """The first number of steps that is enough."""
    steps = 1
    while exchange > share * (steps * step + exchange):
        steps += 1
    return steps


def due(step, local_steps, parts):
    """Each part has its own first step, and comes again."""
    return [p for p in range(parts)
            if (step - p * local_steps // parts) % local_steps == 0]


def _judge_due(function, local_steps, parts):
    first, then = (
        [list(function(step, local_steps, parts)) for step in steps]
        for steps in (range(local_steps), range(local_steps, 2 * local_steps))
    )
    most = -(-parts // local_steps)
    if sorted(chain(*first)) != [*range(parts)]:
        return f"due are {shown(first)}, and not each part once."
    if then != first:
        return f"due are {shown(first)}, and then {shown(then)}."
    if max(map(len, first)) > most:
        return f"due are {shown(first)}, and {most} in a step will do."
    return ""


QUESTIONS = {
    1: Question(
        "a number of GB",
        8,
        [
            (4_000, "That is with an exchange in every step."),
            (0.4, "That is one exchange. How many are there?"),
            (20, "That is the number of exchanges."),
        ],
    ),
    2: Task(
        "a function that returns a number of steps",
        fewest,
        [
            (lambda step, exchange, share: 1, "That exchanges after each step."),
            ("exchange > share", "exchange >= share",
             "Just this share is allowed, too."),
            ("(steps * step + exchange)", "steps * step",
             "From one exchange to the next it takes the steps and an exchange."),
            ("share * (", "(1 - share) * (",
             "That is the share of computing. The exchanges' is given."),
            (lambda step, exchange, share:
             max(1, int(exchange * (1 - share) / (share * step))),
             "Rounded down, it is a step too few."),
            (lambda step, exchange, share: exchange * (1 - share) / (share * step),
             "A whole number of steps is asked for, and one at least."),
            (lambda step, exchange, share: max(1, ceil(exchange / step)),
             "The share plays no part in it."),
        ],
        judge=compared(fewest, [
            (1.0, 0.5, 0.5), (2.0, 6.0, 0.5), (1.0, 2.5, 0.5), (0.25, 1.0, 0.25),
            (1.0, 3.0, 0.125), (1.0, 3.0, 0.75),
        ]),
    ),
    4: Task(
        "a function that returns a list of parts",
        due,
        [
            (lambda step, local_steps, parts: [step % parts],
             "A part's turn comes once in `local_steps` steps, whatever their number."),
            ("(step - p * local_steps // parts) % local_steps == 0",
             "step == p * local_steps // parts", "The turns come again, and again."),
            ("p * local_steps // parts", "0",
             "All at once is what it is to avoid: spread the turns."),
            ("p * local_steps // parts", "p * (local_steps // parts)",
             "Rounded down, two turns are 0 steps apart if there are many parts."),
            ("range(parts)", "range(1, parts + 1)", "The parts are numbered from 0."),
            ("range(parts)", "range(parts - 1)", "The last part never has its turn."),
            ("range(parts)", "range(min(parts, local_steps))",
             "More parts than steps: then some steps have several."),
            ("% local_steps == 0", "% parts == 0",
             "A part comes again after `local_steps` steps, and not after `parts`."),
        ],
        judge=by_cases(_judge_due, "H = {}, {} parts", [
            (1, 1), (2, 1), (4, 2), (8, 4), (5, 3), (3, 5),
        ]),
    ),
}
