"""Exercises of the chapter *Which plan?*."""

from ..question import Question, Task, compared


def useful(plans):
    """Return the plans that no other beats in both time and memory, fastest first."""
    found, least = [], float("inf")
    for name, (_, nbytes) in sorted(plans.items(), key=lambda item: item[1]):
        if nbytes < least:
            found.append(name)
            least = nbytes
    return found


def shares(params, k, stage):
    """Return the bytes per device for weights, gradients and states in float32."""
    cut = [0, 2, 3, 4][stage]
    return 4 * params * (4 - cut) + 4 * params * cut // k


def _one_state(params, k, stage):
    cut = [0, 1, 2, 3][stage]
    return 4 * params * (3 - cut) + 4 * params * cut // k


PLANS = {
    "a": (1.0, 9), "b": (2.0, 5), "c": (3.0, 7), "d": (4.0, 4), "e": (5.0, 8),
    "f": (6.0, 1),
}

QUESTIONS = {
    1: Question(
        "the number of meshes",
        10,
        [
            (6, "Those are the orders of 1, 2, 4. Which other lengths multiply to 8?"),
            (3, "Those are the ways to write 8 as a product; the axes have names."),
            (27, "The product of the three lengths must be 8."),
        ],
    ),
    2: Task(
        "a function `useful(plans)`",
        useful,
        [
            (lambda plans: sorted(plans, key=plans.get),
             "A plan that is slower *and* larger is never chosen."),
            (lambda plans: useful(plans)[::-1], "The fastest comes first."),
            (lambda plans: useful(plans)[:1],
             "With less memory, the fastest does not fit."),
        ],
        judge=compared(useful, [
            (PLANS,), ({"one": (1.0, 2)},), ({},),
            ({name: PLANS[name] for name in "fedcba"},),
            ({"x": (2.0, 1), "y": (1.0, 3), "z": (3.0, 2)},),
            ({"x": (1.0, 1), "y": (2.0, 3), "z": (3.0, 2)},),
        ]),
    ),
    3: Task(
        "a function `shares(params, k, stage)`",
        shares,
        [
            (_one_state, "Adam has two states per parameter."),
            (lambda params, k, stage: 16 * params // (k if stage else 1),
             "Only stage 3 cuts everything."),
            (lambda params, k, stage: shares(params, k, stage) // 4,
             "A number in float32 has four bytes."),
        ],
        judge=compared(shares, [
            (1000, 1, 0), (1000, 4, 0), (1000, 4, 1), (1000, 4, 2), (1000, 4, 3),
            (64, 8, 1), (64, 8, 2), (64, 8, 3),
        ]),
    ),
}
