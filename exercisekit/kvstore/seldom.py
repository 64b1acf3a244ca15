"""Exercises of the chapter *Exchanging less often*."""

from itertools import chain
from math import ceil

from ..question import Question, Task, by_cases, compared, shown


def fewest(step, exchange, share):
    """Return the smallest H with which exchanges take at most `share` of the time."""
    H = 1
    while exchange > share * (H * step + exchange):
        H += 1
    return H


def due(step, local_steps, parts):
    """Return the parts due after `step`: each every `local_steps`, from its first."""
    first = [part * local_steps // parts for part in range(parts)]
    return [part for part in range(parts) if step % local_steps == first[part]]


def _judge_due(function, local_steps, parts):
    first, *later = (
        [list(function(n * local_steps + i, local_steps, parts))
         for i in range(local_steps)]
        for n in (0, 1, 2, 3, 1000)
    )
    most = -(-parts // local_steps)
    if sorted(chain(*first)) != [*range(parts)]:
        return f"{shown(first)} does not have each part due exactly once."
    for again in later:
        if again != first:
            return f"the parts due are {shown(first)}, but later {shown(again)}."
    if max(map(len, first)) > most:
        return f"the parts due are {shown(first)}; no step needs more than {most}."
    return ""


def _not_whole(step, exchange, share):
    return exchange * (1 - share) / (share * step)


QUESTIONS = {
    1: Question(
        "the number of GB",
        8,
        [
            (4_000, "That is with an exchange in every step."),
            (0.4, "That is one exchange. How many are there?"),
            (20, "That is the number of exchanges."),
        ],
    ),
    2: Task(
        "a function `fewest(step, exchange, share)`",
        fewest,
        [
            (lambda step, exchange, share: max(1, ceil(exchange / (share * step))),
             "The time from one exchange to the next is H steps and one exchange."),
            (lambda step, exchange, share:
             max(1, int(_not_whole(step, exchange, share))),
             "Rounding down gives one step too few."),
            (_not_whole, "Return a whole number of steps, at least one."),
        ],
        judge=compared(fewest, [
            (1.0, 0.5, 0.5), (2.0, 6.0, 0.5), (1.0, 2.5, 0.5), (0.25, 1.0, 0.25),
            (1.0, 3.0, 0.125), (1.0, 3.0, 0.75), (1.0, 3.0, 1.0),
        ]),
    ),
    4: Task(
        "a function `due(step, local_steps, parts)`",
        due,
        [
            (lambda step, local_steps, parts: [step % parts],
             "A part is due once in `local_steps` steps."),
            (lambda step, local_steps, parts:
             [*range(parts)] if step % local_steps == 0 else [],
             "All parts are due in the same step: spread them out."),
            (lambda step, local_steps, parts:
             [part + 1 for part in due(step, local_steps, parts)],
             "The parts are numbered from 0."),
        ],
        judge=by_cases(_judge_due, "H = {}, {} parts", [
            (1, 1), (2, 1), (4, 2), (8, 4), (5, 3), (3, 5), (6, 4), (2, 5),
        ]),
    ),
}
