"""Exercises of the chapter *Gradient accumulation and mixed precision*."""

import numpy

from ..counts import counted
from ..question import Question, Task, by_cases, shown


def whole(parts, mean_gradient):
    """Return the gradient of the mean over all words, from those of pieces' means."""
    total = count = 0
    for piece in parts:
        total = total + len(piece) * mean_gradient(piece)
        count += len(piece)
    return total / count


def _mean_of_means(parts, mean_gradient):
    found = [mean_gradient(piece) for piece in parts]
    return sum(found) / len(found)


def _divides_by_pieces(parts, mean_gradient):
    parts = [*parts]
    return sum(len(piece) * mean_gradient(piece) for piece in parts) / len(parts)


def _goes_through_twice(parts, mean_gradient):
    count = sum(len(piece) for piece in parts)
    return sum(len(piece) / count * mean_gradient(piece) for piece in parts)


def _run_whole(function, counts, parts):
    """Run a case whose pieces are a stream, without a length and read once."""
    return function(iter(parts), lambda piece: numpy.mean(piece, axis=0))


def step(masters, gradients, scale):
    """Update unless a gradient of any device overflowed; return the next scale."""
    if not all(numpy.isfinite(g).all() for g in gradients):
        return scale / 2
    summed = sum(g.astype("float32") for g in gradients) / scale
    for master in masters:
        master -= 0.1 * summed
    return scale


def _knows_no_nan(masters, gradients, scale):
    if numpy.isinf(gradients).any():
        return scale / 2
    for master in masters:
        master -= 0.1 * sum(g.astype("float32") for g in gradients) / scale
    return scale


def _same_scale(masters, gradients, scale):
    step(masters, gradients, scale)
    return scale


def _judge_step(function, given, scale):
    start = 0.25 / scale**2  # not 0: a master that is overwritten shows
    masters, right = numpy.full((2, *numpy.shape(given)), start, "float32")
    gradients = numpy.array(given, "float16")
    next_scale = step([*right], [*gradients], scale)
    found = function([*masters], [*gradients], scale)
    if not numpy.allclose(masters, right, rtol=1e-3, atol=0):
        return f"the masters are {shown(masters)} instead of {shown(right)}."
    if found != next_scale:
        return f"the next scale is {found} instead of {next_scale:g}."
    if not numpy.array_equal(gradients, numpy.array(given, "float16"), equal_nan=True):
        return "the masters and the scale are right, but the gradients are changed."
    return ""


QUESTIONS = {
    1: Question(
        "the mean loss per word",
        1.9,
        [(7 / 3, "That is the mean of the three means.")],
    ),
    2: Task(
        "a function `whole(parts, mean_gradient)`",
        whole,
        [
            (_mean_of_means, "A mean of means is right only for equally long pieces."),
            (_divides_by_pieces,
             "It divides by the number of pieces. Divide by the number of words."),
            (_goes_through_twice,
             "A stream can be read only once: count the words on the way."),
        ],
        judge=counted(whole, _run_whole, "Parts {}", [
            ([[3.0]],), ([[1.0], [0.0, 0.0, 5.0]],), ([[1.0, 2.0], [4.0, 5.0]],),
            ([[[1.0, 2.0]], [[4.0, 0.0], [2.0, 2.0], [0.0, 1.0]]],),
        ], tolerance=1e-9),
    ),
    3: Task(
        "a function `step(masters, gradients, scale)`",
        step,
        [
            (_knows_no_nan, "It finds infinite numbers, but NaN is not finite either."),
            (lambda masters, gradients, scale: scale * step(masters, gradients, 1.0),
             "The gradients are those of a scaled loss: divide by the scale."),
            (_same_scale, "With the same scale the next step overflows again."),
        ],
        judge=by_cases(_judge_step, "gradients {}, scale {}", [
            ([[8.0]], 8.0), ([[8.0, 4.0], [16.0, 0.5]], 8.0),
            ([[1.0], [numpy.inf]], 8.0), ([[4e4], [4e4]], 8.0),
            ([[1e-4], [1e-4]], 2.0**15), ([[-numpy.inf, 1.0], [1.0, 1.0]], 4.0),
            ([[1.0], [2.0], [numpy.nan]], 1.0),
        ]),
    ),
    4: Question(
        "a power of two",
        16,
        [
            (32, "float16 rounds to nearest: more than half of 2⁻²⁴ is kept."),
            (8, "That is less than half of 2⁻²⁴, and rounds to zero."),
        ],
    ),
}
