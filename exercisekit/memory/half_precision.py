"""Exercises of the chapter *Gradient accumulation and mixed precision*."""

import numpy

from ..counts import counted
from ..question import Question, Task, by_cases, shown


def whole(parts, mean_gradient):
    """The gradient of the mean over all words, from those of the pieces' means."""
    total = count = 0
    for piece in parts:
        total, count = total + len(piece) * mean_gradient(piece), count + len(piece)
    return total / count


def _mean_of_means(parts, mean_gradient):
    found = [mean_gradient(piece) for piece in parts]
    return sum(found) / len(found)


def _goes_through_twice(parts, mean_gradient):
    count = sum(len(piece) for piece in parts)
    return sum(len(piece) / count * mean_gradient(piece) for piece in parts)


def _run_whole(function, counts, parts):
    """The pieces are a stream, which has no length, and is read once."""
    return function(iter(parts), lambda piece: numpy.mean(piece, axis=0))


def scaled_step(masters, gradients, scale):
    """A step that an overflow on any device leaves out."""
    if not all(numpy.isfinite(g).all() for g in gradients):
        return scale / 2
    summed = sum(g.astype("float32") for g in gradients) / scale
    for master in masters:
        master -= 0.1 * summed
    return scale


def _judge_scaled_step(function, given, scale):
    masters, right = numpy.zeros((2, *numpy.shape(given)), "float32")
    gradients = numpy.array(given, "float16")
    next_scale = scaled_step([*right], [*gradients], scale)
    found = function([*masters], [*gradients], scale)
    if not numpy.allclose(masters, right, rtol=1e-3, atol=0):
        return f"the masters are {shown(masters)}, and not {shown(right)}."
    if found != next_scale:
        return f"the next scale is {found}, and not {next_scale:g}."
    if not numpy.array_equal(gradients, numpy.array(given, "float16"), equal_nan=True):
        return "right, but the gradients are written to."
    return ""


QUESTIONS = {
    1: Question(
        "the mean loss of a word",
        1.9,
        [(7 / 3, "That is the mean of the three means.")],
    ),
    2: Task(
        "your function whole",
        whole,
        [
            (_mean_of_means, "A mean of means is right only for pieces of one length."),
            ("return total / count", "return total",
             "That is the sum over the words: divide it by how many there are."),
            ("count + len(piece)", "count + 1",
             "It divides by the number of pieces, and not of words."),
            ("len(piece) * mean_gradient", "mean_gradient",
             "Only sums can be added up: make one of each piece's mean first."),
            ("total + len(piece)", "len(piece)",
             "Only the last piece is left: what of those before?"),
            ("for piece in parts", "for piece in list(parts)[1:]",
             "Where is the first piece? Whatever looks at a stream takes from it."),
            (_goes_through_twice,
             "A stream is empty when you come again: count the words on the way."),
            (lambda parts, mean_gradient: sum(map(mean_gradient, parts)) / len(parts),
             "A stream has no length: count on the way, and count words."),
        ],
        judge=counted(whole, _run_whole, "Parts {}", [
            ([[3.0]],), ([[1.0], [0.0, 0.0, 5.0]],), ([[1.0, 2.0], [4.0, 5.0]],),
            ([[[1.0, 2.0]], [[4.0, 0.0], [2.0, 2.0], [0.0, 1.0]]],),
        ], tolerance=1e-9),
    ),
    3: Task(
        "your function step",
        scaled_step,
        [
            ("isfinite(g).all() for g in gradients",
             "isfinite(g).all() for g in gradients[:1]",
             "It asks the first device only, as MXNet's own scaler does."),
            ("isfinite(g).all()", "isfinite(g).any()",
             "A single number that is not finite spoils the step."),
            ("numpy.isfinite(g).all()", "not numpy.isinf(g).any()",
             "An infinite one is found, but nan is not finite, either."),
            ('g.astype("float32") for', "g for",
             "The sum overflows in float16, although each gradient is finite."),
            (lambda masters, gradients, scale: scaled_step(
                 masters, [sum(gradients)], scale
             ),
             "It adds up in float16 first: what overflows then was finite before."),
            ('g.astype("float32") for', '(g / scale).astype("float32") for',
             "The scale is taken out twice."),
            ('g.astype("float32") for g in gradients) / scale',
             '(g / scale).astype("float32") for g in gradients)',
             "Divided in float16, a small gradient is zero again: change the type "
             + "first."),
            (") / scale", ")", "The gradients are those of a scaled loss."),
            (") / scale", ") / scale / len(gradients)",
             "Expected: a step by the sum of the gradients, and not by their mean."),
            ("in masters:", "in masters[:1]:",
             "The masters of the other devices need the same step."),
            ("master -= ", "master = master - ",
             "That makes a new array, and leaves the master as it was."),
            ("return scale / 2", "return scale",
             "With the same scale the next step overflows again."),
        ],
        judge=by_cases(_judge_scaled_step, "gradients {}, scale {}", [
            ([[8.0]], 8.0), ([[8.0, 4.0], [16.0, 0.5]], 8.0),
            ([[1.0], [numpy.inf]], 8.0), ([[4e4], [4e4]], 8.0),
            ([[1e-4], [1e-4]], 2.0**15), ([[-numpy.inf, 1.0], [1.0, 1.0]], 4.0),
            ([[1.0], [2.0], [numpy.nan]], 2.0),
        ]),
    ),
    4: Question(
        "a power of two",
        16,
        [
            (32, "float16 rounds to the nearest: more than half of 2⁻²⁴ is kept."),
            (8, "That is less than half of 2⁻²⁴, and rounds to zero."),
        ],
    ),
}
