"""Exercises of the chapter *Wrong without an error*."""

import numpy

from ..question import Question, Task, as_python, by_cases


def norm_once(parts):
    """Return the norm of the whole gradient: each piece counts, a copy only once."""
    squares, seen = 0.0, set()
    for own in parts:
        for name, g in own.items():
            if "/" in name or name not in seen:
                squares += (g * g).sum()
            seen.add(name)
    return squares**0.5


def merge(a, b):
    """Return (rows, mean, variance) of both, with the spread of the two means."""
    (n, mean, var), (m, other, spread) = a, b
    rows, apart = n + m, other - mean
    between = n * m * apart**2 / rows
    return rows, mean + m * apart / rows, (n * var + m * spread + between) / rows


def _merged(mean=True, between=1.0, divide=0):
    """Return a merge with one part as a learner might write it."""

    def function(a, b):
        (n, x, v), (m, y, w) = a, b
        rows = n + m
        middle = (n * x + m * y) / rows if mean else (x + y) / 2
        spread = between * n * m * (y - x) ** 2 / rows
        return rows, middle, (n * v + m * w + spread) / (rows - divide)

    return function


def _parts(k, seed):
    """Return a gradient over k devices: W1 in unequal pieces, and three copies."""
    rng = numpy.random.RandomState(seed)
    b1, b2, W2 = (rng.randint(1, 5, size) * 1.0 for size in (3, 2, (2, 2)))
    parts = [{"b1": b1.copy(), f"W1/{i}": rng.randint(1, 5, (2, i + 1)) * 1.0}
             for i in range(k)]
    for own in parts[: max(1, k - 1)]:
        own["b2"] = b2.copy()
    for own in parts[min(1, k - 1) :]:
        own["W2"] = W2.copy()
    return parts


def _judge_norm(function, k, seed):
    parts = _parts(k, seed)
    expected, kept = norm_once(parts), as_python(parts)
    found = float(function(parts))
    if as_python(parts) != kept:
        return "it changes its argument."
    if abs(found - expected) <= 1e-9 * expected:
        return ""
    return f"it returns {found:.6g}, but the norm on one device is {expected:.6g}."


def _judge_merge(function, n, m, channels):
    rng = numpy.random.RandomState(n + m)
    rows = rng.randn(n + m, channels) + numpy.arange(n + m)[:, None]
    shards = [(len(s), s.mean(0), s.var(0)) for s in (rows[:n], rows[n:])]
    if channels == 1:
        shards = [(n, mean.item(), var.item()) for n, mean, var in shards]
    kept = as_python(shards)
    found = function(*shards)
    if as_python(shards) != kept:
        return "it changes its arguments."
    if len(found) != 3:
        return f"it returns {len(found)} values: return rows, mean and variance."
    expected = len(rows), rows.mean(0), rows.var(0)
    for what, x, y in zip(("number of rows", "mean", "variance"), found, expected):
        x, y = numpy.ravel(x), numpy.ravel(y)
        if x.shape != y.shape:
            return f"the {what} has {x.size} numbers instead of {y.size}."
        for i, (a, b) in enumerate(zip(x, y)):
            of = f" of channel {i}" if y.size > 1 else ""
            if not abs(a - b) <= 1e-9:
                return f"the {what}{of} is {a:.6g} instead of {b:.6g}."
    return ""


QUESTIONS = {
    1: Question(
        "the factor",
        0.5,
        [
            (1, "Each stage is within the limit; is the whole gradient?"),
            (0.25, "The norm is not the sum of the norms."),
            (2, "That is the global norm. The factor brings it to 1."),
        ],
    ),
    2: Task(
        "a function `norm_once(parts)`",
        norm_once,
        [
            (lambda parts:
             sum((g * g).sum() for own in parts for g in own.values()) ** 0.5,
             "A copy counts once, however many devices hold it."),
            (lambda parts: sum(norm_once([own]) for own in parts),
             "Norms cannot be added, and copies are counted again."),
            (lambda parts: norm_once(parts) ** 2, "That is the square of the norm."),
        ],
        judge=by_cases(_judge_norm, "{} devices, gradient {}",
                       [(1, 0), (2, 1), (3, 2), (4, 3)]),
    ),
    3: Task(
        "a function `merge(a, b)`",
        merge,
        [
            (_merged(mean=False), "Weight each mean by its number of rows."),
            (_merged(between=0), "The distance between the two means is missing."),
            (_merged(divide=1), "Batch normalization divides by n, not by n − 1."),
        ],
        judge=by_cases(_judge_merge, "{} and {} rows, {} channels",
                       [(1, 1, 1), (2, 2, 1), (3, 1, 2), (5, 20, 3)]),
    ),
}
