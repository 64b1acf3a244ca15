"""Exercises of the chapter *Long sequences*."""

import numpy

from ..question import Question, Task, by_cases, compared


def combine(one, two):
    """The state of queries that have met the keys of both states."""
    (m1, s1, o1), (m2, s2, o2) = one, two
    m = numpy.maximum(m1, m2)
    old1, old2 = numpy.exp(m1 - m), numpy.exp(m2 - m)
    return m, s1 * old1 + s2 * old2, o1 * old1 + o2 * old2


def _state(shape, seed):
    """Maximum, sum and output of scores (heads, queries, keys) with some values."""
    rng = numpy.random.RandomState(seed)
    x, v = rng.randn(*shape), rng.randn(shape[0], shape[2], 3)
    m = x.max(axis=2, keepdims=True)
    p = numpy.exp(x - m)
    return m, p.sum(axis=2, keepdims=True), p @ v


def _numbers(*state):
    """A state of one query of one head."""
    return tuple(numpy.full((1, 1, 1), number) for number in state)


_ONE, _TWO = _numbers(1.0, 2.0, 4.0), _numbers(3.0, 1.0, 0.5)
_LARGE = _numbers(2000.0, 1.5, 3.0)


def fold(k):
    """An order of 2k chunks: an early one and a late one for each of k devices."""
    return [[i, 2 * k - 1 - i] for i in range(k)]


def _judge_fold(function, k):
    order = [list(own) for own in function(k)]
    once = sorted(c for own in order for c in own) == list(range(2 * k))
    if not once or [len(own) for own in order] != [2] * k:
        return f"it is {order}, and not {2 * k} chunks, two for each device."
    for r in range(k):
        pairs = [(order[i], order[i - r]) for i in range(k)]
        row = [sum(b <= a for a in own for b in come) for own, come in pairs]
        if len({*row}) > 1:
            return f"it is {order}: a round has {row} pairs."
    return ""


def needed(a, b, size, window):
    """Whether a query of chunk a looks at a key of chunk b, within the window."""
    return a == b or (b < a and (a - b - 1) * size + 1 < window)


def _judge_needed(function, size, window):
    at = numpy.arange(6 * size)
    back = at[:, None] - at
    seen = (back >= 0) & (back < window)
    for a, b in numpy.ndindex(6, 6):
        part = seen[a * size : (a + 1) * size, b * size : (b + 1) * size]
        found = function(a, b, size, window)
        if found is None or bool(found) != part.any():
            return (
                f"needed({a}, {b}, {size}, {window}) is {found}; of the "
                f"pairs of positions, {part.sum()} are looked at."
            )
    return ""


QUESTIONS = {
    1: Question(
        "the share of rounds in which a device waits",
        28 / 64,
        [
            (36 / 64, "In these rounds the devices work."),
            (0.5, "A device's own chunk is work, too."),
            (7 / 8, "That is device 0 alone."),
        ],
    ),
    2: Task(
        "your function combine",
        combine,
        [
            (lambda one, two: tuple(a + b for a, b in zip(one, two)),
             "Sums with different maxima cannot be added up, and maxima never."),
            (", numpy.exp(m2 - m)", ", 1",
             "The second state may have the smaller maximum: rescale both."),
            ("numpy.exp(m1 - m)", "1",
             "The first state may have the smaller maximum: rescale both."),
            ("numpy.exp(m1 - m), numpy.exp(m2 - m)", "numpy.exp(m1), numpy.exp(m2)",
             "exp of a maximum itself overflows: take the distance to the new one."),
            ("numpy.exp(m1 - m), numpy.exp(m2 - m)",
             "numpy.exp(m - m1), numpy.exp(m - m2)",
             "A greater maximum makes what was summed before smaller."),
            ("return m,", "return m1,",
             "The sums are of the new maximum: return that with them."),
            ("numpy.maximum(m1, m2)", "numpy.minimum(m1, m2)",
             "Measured from the smaller maximum, exponentials overflow."),
            ("numpy.maximum(m1, m2)", "max(m1.max(), m2.max())",
             "Every query of every head has a maximum of its own."),
            ("o1 * old1 + o2 * old2", "o1 + o2",
             "The outputs are sums of exponentials, too: rescale them."),
            ("o1 * old1 + o2 * old2",
             "(o1 * old1 + o2 * old2) / (s1 * old1 + s2 * old2)",
             "The division comes at the very end, when all keys have been met."),
        ],
        judge=compared(combine, [
            (_ONE, _ONE), (_ONE, _TWO), (_TWO, _ONE), (_TWO, _LARGE), (_LARGE, _TWO),
            (_state((2, 3, 4), 1), _state((2, 3, 5), 2)),
        ], tolerance=1e-9),
    ),
    3: Task(
        "your function fold",
        fold,
        [
            ("[i, 2 * k - 1 - i]", "[2 * i, 2 * i + 1]",
             "The first device has two early chunks, and little to look at."),
            ("[i, 2 * k - 1 - i]", "[i, k + i]",
             "The device with the earliest chunk should have the latest, too."),
            ("[[i, 2 * k - 1 - i] for i in range(k)]", "[[i] for i in range(2 * k)]",
             "That is for twice as many devices."),
            ("2 * k - 1 - i", "2 * k - i",
             "The last chunk has the number 2k - 1, for the first is 0."),
            ("2 * k - 1 - i", "k - 1 - i", "There are 2k chunks, and not k."),
            ("range(k)", "range(1, k + 1)", "Chunks are numbered from 0."),
            ("[[i, 2 * k - 1 - i] for i in range(k)]", "list(range(2 * k))",
             "Each device needs a list of its own, in the list."),
        ],
        judge=by_cases(_judge_fold, "fold({})", [(1,), (2,), (3,), (4,), (6,)]),
    ),
    4: Task(
        "your function needed",
        needed,
        [
            ("(a - b - 1) * size + 1 < window", "True",
             "An earlier chunk may be out of the window."),
            ("(a - b - 1) * size + 1", "(a - b) * size",
             "That is how far a query is from its like in the other chunk. Some are "
             + "nearer."),
            ("(a - b - 1) * size + 1", "(a - b + 1) * size - 1",
             "That is the farthest pair. One that is near is enough."),
            (" + 1 < window", " < window",
             "The last key before a chunk is 1 from its first query, and the query "
             + "itself is in the window."),
            (" + 1 < window", " + 2 < window",
             "The first query is next to the last key before its chunk: 1 away."),
            ("b < a and ", "", "Keys of later chunks are never looked at."),
            ("b < a and (a - b - 1)", "(abs(a - b) - 1)",
             "Nobody looks ahead: the window lies before a position."),
            ("a == b or ", "", "A chunk's queries look at keys of their own chunk."),
            ("(a - b - 1) * size + 1 < window", "a - b < window",
             "The window counts positions, and not chunks."),
        ],
        judge=by_cases(_judge_needed, "size {}, window {}", [
            (1, 1), (1, 3), (4, 1), (4, 2), (4, 5), (4, 6), (3, 100),
        ]),
    ),
}
