"""Exercises of the chapter *Micro-batches*."""

from d2l_ext.pipeline.schedule import Op, clock, peak_held

from ..question import Question, Task, by_cases

KINDS = {"F": "forward", "B": "backward"}


def first_first(p, m):
    """GPipe's schedule, that goes backward with the first micro-batch first."""
    order = [("F", i) for i in range(m)] + [("B", i) for i in range(m)]
    return [order] * p


def limited(p, m, most):
    """1F1B that holds `most` at the most."""
    orders = []
    for s in range(p):
        forward, back = [("F", i) for i in range(m)], [("B", i) for i in range(m)]
        ahead = min(p - s, m, most)
        turns = [work for pair in zip(back, forward[ahead:]) for work in pair]
        orders.append(forward[:ahead] + turns + back[m - ahead :])
    return orders


def _in_groups(p, m, most):
    groups = [range(i, min(i + most, m)) for i in range(0, m, most)]
    return [[(kind, i) for group in groups for kind in "FB" for i in group]] * p


def _run(orders, p, m):
    """What is wrong with a schedule, or ""; its slots, its works, what it holds."""
    orders = [[tuple(work) for work in order] for order in orders]
    wanted = sorted((kind, i) for kind in KINDS for i in range(m))
    for s, order in enumerate(orders):
        if sorted(order) != wanted:
            works = " ".join(f"{kind}{i}" for kind, i in order)
            return f"stage {s} does {works}: not F and B of each once.", 0, 0, 0
    if len(orders) != p:
        return f"there are {len(orders)} stages.", 0, 0, 0
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
            return f"stage {s} goes backward with {back}."
    enough = 2 * (m + p - 1)
    return f"it takes {slots} slots; {enough} are enough." * (slots > enough)


def _judge_limited(function, p, m, most):
    problem, slots, _, held = _run(function(p, m, most), p, m)
    if problem:
        return problem
    if max(held) > most:
        return f"the stages hold {held}."
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
            ("(\"B\", i) for i in range(m)", "(\"B\", i) for i in reversed(range(m))",
             "That is GPipe's order: the last one first."),
            (lambda p, m: limited(p, m, 1),
             "One micro-batch at a time is no pipeline: the stages wait in turn."),
            ("[order] * p", "order", "Every stage has a list of its own."),
            ("[order] * p", "[order] * m",
             "A list for each stage, p of them: m is the number of micro-batches."),
            ("(\"B\", i) for i in range(m)", "(\"B\", i) for i in range(m - 1)",
             "Each micro-batch goes backward, the last one, too."),
            ("[(\"F\", i) for i in range(m)] + [(\"B\", i) for i in range(m)]",
             "[(\"B\", i) for i in range(m)] + [(\"F\", i) for i in range(m)]",
             "Backward work needs what forward work has left: it comes after it."),
            ("range(m)] + [(\"B\", i) for i in range(m)]",
             "range(m)] + [(\"B\", m - i) for i in range(m)]",
             "Micro-batches are numbered from 0 to m - 1."),
            ("return [order] * p",
             "return [order] * (p - 1) + [order[:m] + order[m:][::-1]]",
             "The last stage begins the backward work: it sets the order of all."),
            ("[order] * p",
             "[[(kind, i) for i in range(m) for kind in 'FB']] + [order] * (p - 1)",
             "The first stage sends on all before the first gradient comes back."),
        ],
        judge=by_cases(_judge_first_first, "{} stages, {} micro-batches", [
            (1, 1), (1, 2), (2, 2), (3, 4), (4, 8),
        ]),
    ),
    4: Task(
        "a function `limited(p, m, most)`",
        limited,
        [
            ("min(p - s, m, most)", "min(p - s, m)",
             "That is 1F1B: its first stage goes ahead by p micro-batches."),
            ("min(p - s, m, most)", "1",
             "There is room for more than one, and the stages wait."),
            ("min(p - s, m, most)", "min(p - s, m, max(1, most - 1))",
             "The one that a stage works on is held as well: use all the room."),
            ("min(p - s, m, most)", "min(p - s - 1, m, most)",
             "The last stage needs one forward before its first backward."),
            (_in_groups,
             "After every group the pipeline runs empty: begin one when one is done."),
            ("min(p - s, m, most)", "min(p - s, m, most if s == 0 else m)",
             "Every stage has the limit, and not the first alone."),
            (" + back[m - ahead :]", "",
             "What was ahead at the start is still to go backward at the end."),
            ("zip(back, forward[ahead:])", "zip(forward[ahead:], back)",
             "Backward first, then forward: otherwise one more is held."),
            ("forward[:ahead] + turns", "forward[: ahead - 1] + turns",
             "One forward is missing between the start and the turns."),
        ],
        judge=by_cases(_judge_limited, "{} stages, {} micro-batches, room for {}", [
            (1, 1, 1), (2, 2, 2), (2, 6, 4), (3, 4, 3), (4, 8, 2), (4, 8, 1),
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
