"""Exercises of the chapter *Long sequences*."""

import numpy

from ..question import Question, Task, by_cases, compared


def combine(one, two):
    """Return the state of queries that have met the keys of both states."""
    (m1, s1, o1), (m2, s2, o2) = one, two
    m = numpy.maximum(m1, m2)
    old1, old2 = numpy.exp(m1 - m), numpy.exp(m2 - m)
    return m, s1 * old1 + s2 * old2, o1 * old1 + o2 * old2


def _state(shape, seed):
    """Return the maximum, sum and output of some (heads, queries, keys) scores."""
    rng = numpy.random.RandomState(seed)
    x, v = rng.randn(*shape), rng.randn(shape[0], shape[2], 3)
    m = x.max(axis=2, keepdims=True)
    p = numpy.exp(x - m)
    return m, p.sum(axis=2, keepdims=True), p @ v


def _numbers(*state):
    """Return a state of one query of one head."""
    return tuple(numpy.full((1, 1, 1), number) for number in state)


_ONE, _TWO = _numbers(1.0, 2.0, 4.0), _numbers(3.0, 1.0, 0.5)
_LARGE = _numbers(2000.0, 1.5, 3.0)


def _exponentials_of_maxima(one, two):
    (m1, s1, o1), (m2, s2, o2) = one, two
    old1, old2 = numpy.exp(m1), numpy.exp(m2)
    return numpy.maximum(m1, m2), s1 * old1 + s2 * old2, o1 * old1 + o2 * old2


def _outputs_as_they_are(one, two):
    m, s, _ = combine(one, two)
    return m, s, one[2] + two[2]


def fold(k):
    """Return an order of 2k chunks: an early and a late one for each of k devices."""
    return [[i, 2 * k - 1 - i] for i in range(k)]


def _judge_fold(function, k):
    order = [list(own) for own in function(k)]
    once = sorted(c for own in order for c in own) == list(range(2 * k))
    if not once or [len(own) for own in order] != [2] * k:
        return f"{order} is not an order of {2 * k} chunks, two for each device."
    for r in range(k):
        pairs = [(order[i], order[i - r]) for i in range(k)]
        row = [sum(b <= a for a in own for b in come) for own, come in pairs]
        if len({*row}) > 1:
            return f"with {order}, the devices have {row} pairs in one round."
    return ""


def needed(a, b, size, window):
    """Return whether a query of chunk a uses a key of chunk b, within the window."""
    if b >= a:
        return a == b
    nearest = (a - b - 1) * size + 1  # from the first query back to the last key
    return nearest < window


def _judge_needed(function, size, window):
    at = numpy.arange(6 * size)
    back = at[:, None] - at
    seen = (back >= 0) & (back < window)
    for a, b in numpy.ndindex(6, 6):
        part = seen[a * size : (a + 1) * size, b * size : (b + 1) * size]
        found = function(a, b, size, window)
        if found is None or bool(found) != part.any():
            return (
                f"needed({a}, {b}, {size}, {window}) is {found}; pairs of positions "
                f"in the window: {part.sum()}."
            )
    return ""


QUESTIONS = {
    1: Question(
        "the share of rounds in which a device waits",
        28 / 64,
        [
            (36 / 64, "In these rounds the devices work."),
            (0.5, "A device's own chunk is work, too."),
            (7 / 8, "That is only device 0."),
        ],
        tolerance=0.01,
    ),
    2: Task(
        "a function `combine(one, two)`",
        combine,
        [
            (lambda one, two: tuple(a + b for a, b in zip(one, two)),
             "Sums with different maxima cannot be added, and maxima never."),
            (_exponentials_of_maxima,
             "exp of a maximum itself overflows: take the distance to the new one."),
            (_outputs_as_they_are,
             "The outputs are sums of exponentials, too: rescale them."),
        ],
        judge=compared(combine, [
            (_ONE, _ONE), (_ONE, _TWO), (_TWO, _ONE), (_TWO, _LARGE), (_LARGE, _TWO),
            (_state((2, 3, 4), 1), _state((2, 3, 5), 2)),
        ], tolerance=1e-9),
    ),
    3: Task(
        "a function `fold(k)`",
        fold,
        [
            (lambda k: [[2 * i, 2 * i + 1] for i in range(k)],
             "The first device has two early chunks, which use few keys."),
            (lambda k: [[i, k + i] for i in range(k)],
             "The device with the earliest chunk should have the latest, too."),
            (lambda k: [[i] for i in range(2 * k)],
             "That is for twice as many devices."),
        ],
        judge=by_cases(_judge_fold, "fold({})", [(1,), (2,), (3,), (4,), (6,)]),
    ),
    4: Task(
        "a function `needed(a, b, size, window)`",
        needed,
        [
            (lambda a, b, size, window: b <= a,
             "An earlier chunk may be out of the window."),
            (lambda a, b, size, window: a == b or (b < a and (a - b) * size < window),
             "That is the distance between like places. Some pairs are nearer."),
            (lambda a, b, size, window: needed(max(a, b), min(a, b), size, window),
             "No query uses a later key: the window lies before it."),
        ],
        judge=by_cases(_judge_needed, "size {}, window {}", [
            (1, 1), (1, 3), (4, 1), (4, 2), (4, 5), (4, 6), (3, 100),
        ]),
    ),
}
