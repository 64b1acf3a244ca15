"""Exercises of the chapter *Micro-batches*."""

from itertools import chain
from numbers import Integral

from d2l_ext.pipeline.schedule import Op, clock, peak_held

from ..question import Question, Task, by_cases

KINDS = {"F": "forward", "B": "backward"}


def first_first(p, m):
    """Return GPipe's schedule, but going backward with the first micro-batch first."""
    order = [("F", i) for i in range(m)] + [("B", i) for i in range(m)]
    return [order] * p


def limited(p, m, most):
    """Schedule each stage backward if it can, else forward if it has room."""
    orders = [[] for _ in range(p)]
    forward, backward = [0] * p, [0] * p  # micro-batches that each stage is done with
    while min(backward) < m:
        F, B = [*forward], [*backward]  # as the slot begins
        for s in range(p):
            if B[s] < (F[s] if s == p - 1 else B[s + 1]):
                orders[s].append(("B", B[s]))
                backward[s] += 1
            elif F[s] < (F[s - 1] if s else m) and F[s] - B[s] < most:
                orders[s].append(("F", F[s]))
                forward[s] += 1
    return orders


def _in_turns(p, m, aheads):
    orders = []
    for s in range(p):
        forward, back = [("F", i) for i in range(m)], [("B", i) for i in range(m)]
        ahead = min(aheads(s), m)
        turns = [work for pair in zip(back, forward[ahead:]) for work in pair]
        orders.append(forward[:ahead] + turns + back[m - ahead :])
    return orders


def _one_at_a_time(p, m, most):
    return _in_turns(p, m, lambda s: 1)


def _limits_the_first(p, m, most):
    return _in_turns(p, m, lambda s: min(p, most) if s == 0 else p - s)


def _in_groups(p, m, most):
    groups = [range(i, min(i + most, m)) for i in range(0, m, most)]
    return [[(kind, i) for group in groups for kind in "FB" for i in group]] * p


def _is_work(work):
    if not isinstance(work, (list, tuple)) or len(work) != 2:
        return False
    return isinstance(work[0], str) and isinstance(work[1], Integral)


def _run(orders, p, m):
    """Return (fault or "", slots, work, micro-batches held) of a schedule."""
    orders = [list(order) for order in orders]
    if not all(map(_is_work, chain(*orders))):
        return "each stage needs a list of pairs such as ('F', 0).", 0, 0, 0
    orders = [[tuple(work) for work in order] for order in orders]
    wanted = sorted((kind, i) for kind in KINDS for i in range(m))
    for s, order in enumerate(orders):
        if sorted(order) != wanted:
            works = " ".join(f"{kind}{i}" for kind, i in order) or "nothing"
            return (f"stage {s} does {works}: it must do F and B of each micro-batch "
                    "once."), 0, 0, 0
    if len(orders) != p:
        return f"the number of stages is {len(orders)} instead of {p}.", 0, 0, 0
    works = [
        [Op(s, KINDS[kind], i) for kind, i in order] for s, order in enumerate(orders)
    ]
    slots = clock(works)
    return "", max(slot.end for slot in slots), works, peak_held(works)


def _judge_first_first(function, p, m):
    problem, slots, works, _ = _run(function(p, m), p, m)
    if problem:
        return problem
    for s, order in enumerate(works):
        back = [work.chunk for work in order if work.kind == "backward"]
        if back != sorted(back):
            return f"stage {s} goes backward in the order {back}."
    enough = 2 * (m + p - 1)
    return f"it takes {slots} slots; {enough} are enough." * (slots > enough)


def _judge_limited(function, p, m, most):
    problem, slots, _, held = _run(function(p, m, most), p, m)
    if problem:
        return problem
    if max(held) > most:
        return f"the stages hold up to {held} micro-batches; the limit is {most}."
    enough = _run(limited(p, m, most), p, m)[1]
    return f"it takes {slots} slots; {enough} are enough." * (slots > enough)


QUESTIONS = {
    1: Question(
        "the number of micro-batches",
        63,
        [
            (70, "The bubble is a share of all slots, m + p - 1, and not of m."),
            (72, "A stage waits for the p - 1 others, not for p."),
            (64, "One fewer is enough: p - 1 is 7."),
        ],
    ),
    2: Task(
        "a function `first_first(p, m)`",
        first_first,
        [
            (lambda p, m: [order[:m] + order[m:][::-1] for order in first_first(p, m)],
             "That is GPipe's order: the last one first."),
            (lambda p, m: _one_at_a_time(p, m, 1),
             "One micro-batch at a time is not a pipeline: the stages wait in turn."),
            (lambda p, m: [[*order[m:], *order[:m]] for order in first_first(p, m)],
             "Backward work needs the results of forward work, so it comes later."),
        ],
        judge=by_cases(_judge_first_first, "p = {}, m = {}", [
            (1, 1), (1, 2), (2, 2), (3, 4), (4, 8), (4, 3),
        ]),
    ),
    4: Task(
        "a function `limited(p, m, most)`",
        limited,
        [
            (lambda p, m, most: _in_turns(p, m, lambda s: p - s),
             "That is 1F1B: its first stage goes ahead by p micro-batches."),
            (_limits_the_first, "Every stage has the limit, not only the first."),
            (_in_groups,
             "The pipeline runs empty after each group: use a place as soon as it is "
             + "free."),
        ],
        judge=by_cases(_judge_limited, "p = {}, m = {}, most = {}", [
            (1, 1, 1), (2, 2, 2), (2, 6, 4), (3, 4, 3), (4, 8, 2), (4, 8, 3), (4, 8, 1),
            (4, 3, 4),
        ]),
    ),
    5: Question(
        "how many times too large the gradients are, with equal sizes",
        4,
        [
            (0.25, "They are too large: four means are added."),
            (1, "A sum of four means is not the mean of all."),
            (16, "The number of examples does not matter, only that of the means."),
        ],
    ),
}
