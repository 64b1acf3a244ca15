"""Exercises of the chapter *Gradient accumulation and mixed precision*."""

import numpy

from ..counts import counted
from ..question import Question, Task, by_cases, shown


def whole(parts, mean_gradient):
    """The gradient of the mean over all words, from those of the pieces' means."""
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


def _divides_by_nothing(parts, mean_gradient):
    return sum(len(piece) * mean_gradient(piece) for piece in parts)


def _adds_means(parts, mean_gradient):
    parts = [*parts]
    return sum(map(mean_gradient, parts)) / sum(map(len, parts))


def _goes_through_twice(parts, mean_gradient):
    count = sum(len(piece) for piece in parts)
    return sum(len(piece) / count * mean_gradient(piece) for piece in parts)


def _asks_for_the_length(parts, mean_gradient):
    return sum(map(mean_gradient, parts)) / len(parts)


def _run_whole(function, counts, parts):
    """Run a case whose pieces are a stream, without a length and read once."""
    return function(iter(parts), lambda piece: numpy.mean(piece, axis=0))


def step(masters, gradients, scale):
    """The next scale; a step that any device's overflow leaves out."""
    if not all(numpy.isfinite(g).all() for g in gradients):
        return scale / 2
    summed = sum(g.astype("float32") for g in gradients) / scale
    for master in masters:
        master -= 0.1 * summed
    return scale


def _finite(gradients):
    return all(numpy.isfinite(g).all() for g in gradients)


def _summed(gradients, scale):
    return sum(g.astype("float32") for g in gradients) / scale


def _step(finite=_finite, summed=_summed, halved=0.5, devices=None):
    """A step with one part as a learner might write it."""

    def stepped(masters, gradients, scale):
        if not finite(gradients):
            return scale * halved
        for master in masters[:devices]:
            master -= 0.1 * summed(gradients, scale)
        return scale

    return stepped


def _leaves_the_masters(masters, gradients, scale):
    masters = [master - 0.1 * _summed(gradients, scale) for master in masters]
    return scale if _finite(gradients) else scale / 2


def _judge_step(function, given, scale):
    masters, right = numpy.zeros((2, *numpy.shape(given)), "float32")
    gradients = numpy.array(given, "float16")
    next_scale = step([*right], [*gradients], scale)
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
        "the mean loss per word",
        1.9,
        [(7 / 3, "That is the mean of the three means.")],
    ),
    2: Task(
        "a function `whole(parts, mean_gradient)`",
        whole,
        [
            (_mean_of_means, "A mean of means is right only for pieces of one length."),
            (_divides_by_nothing,
             "That is the sum over the words: divide it by their number."),
            (_divides_by_pieces,
             "It divides by the number of pieces. Divide by the number of words."),
            (_adds_means,
             "Only sums can be added up: make a sum of each piece's mean first."),
            (_goes_through_twice,
             "A stream can be read only once: count the words on the way."),
            (_asks_for_the_length,
             "A stream has no length: count on the way, and count words."),
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
            (_step(finite=lambda gradients: numpy.isfinite(gradients[0]).all()),
             "It tests the gradients of the first device only."),
            (_step(finite=lambda gradients: not numpy.isinf(gradients).any()),
             "It finds infinite numbers, but NaN is not finite, either."),
            (_step(finite=lambda gradients: numpy.isfinite(gradients).any()),
             "All numbers must be finite. It asks for one."),
            (_step(summed=lambda gradients, scale: sum(gradients) / scale),
             "The sum overflows in float16, although each gradient is finite."),
            (_step(summed=lambda gradients, scale: sum(
                (g / numpy.float16(scale)).astype("float32") for g in gradients)),
             ("Divided in float16, a small gradient is zero again: change the type "
              "first.")),
            (_step(summed=lambda gradients, scale: _summed(gradients, 1)),
             "The gradients are those of a scaled loss: divide by the scale."),
            (_step(summed=lambda gradients, scale: _summed(gradients, scale) / len(
                gradients)),
             "Expected: a step by the sum of the gradients. It takes their mean."),
            (_step(devices=1), "The masters of the other devices need the same step."),
            (_step(halved=1), "With the same scale the next step overflows again."),
            (_leaves_the_masters,
             "That makes new arrays. Change the masters in place, by -= for example."),
        ],
        judge=by_cases(_judge_step, "gradients {}, scale {}", [
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
