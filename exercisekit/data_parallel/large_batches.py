"""Exercises of the chapter *Large batches*."""

import numpy

from ..counts import counted
from ..question import Question, Task, compared


def ratio_of_chunks(ws, us, total):
    """‖w‖ / ‖u‖ on each device, of a layer in chunks: two numbers are summed."""
    squares = zip(total([float(w @ w) for w in ws]), total([float(u @ u) for u in us]))
    return [(w / u) ** 0.5 for w, u in squares]


def _run_ratios(function, counts, k, size):
    rng = numpy.random.RandomState(k)
    ws, us = counts.keep(list(rng.randn(k, size)), list(rng.randn(k, size)))
    total = counts.calls(
        "each device sends {} number{s}",
        lambda values: [sum(values) for _ in values],
        lambda values: numpy.size(values[0]),
    )
    return {f"device {i}": x for i, x in enumerate(function(ws, us, total))}


def _gathered(ws, us, total):
    k, n = len(ws), len(ws[0])

    def all_of(parts):
        wide = [numpy.zeros((k, n)) for _ in parts]
        for i, part in enumerate(parts):
            wide[i][i] = part
        return [numpy.linalg.norm(x) for x in total(wide)]

    return [w / u for w, u in zip(all_of(ws), all_of(us))]


def _mean_of_ratios(ws, us, total):
    norm = numpy.linalg.norm
    return [s / len(ws) for s in total([norm(w) / norm(u) for w, u in zip(ws, us)])]


def fastest(critical, overhead, speed):
    """Where (1 + critical/B)·(overhead + B/speed) is least."""
    return (critical * overhead * speed) ** 0.5


QUESTIONS = {
    1: Question(
        "the rate",
        0.096,
        [
            (0.08, "Number 5 is the sixth step."),
            (0.32, "That is the rate after the warm-up."),
            (0.02, "That is the rate of the small batch."),
        ],
        tolerance=1e-6,
    ),
    2: Task(
        "your function ratios",
        ratio_of_chunks,
        [
            (lambda ws, us, total: [
                 numpy.linalg.norm(w) / numpy.linalg.norm(u) for w, u in zip(ws, us)
             ],
             "Each device takes the lengths of its own chunks, and not the layer's."),
            (_mean_of_ratios,
             "A mean of the chunks' ratios is not the ratio of the layer's lengths."),
            (_gathered,
             "It is right, but whole chunks are sent. What of a chunk does a length "
             + "need?"),
            ("[(w / u) ** 0.5 for", "[w / u for",
             "These are squares of lengths: the root is missing."),
            ("float(w @ w) for w in ws", "float(w @ w) ** 0.5 for w in ws",
             "Lengths do not add up: their squares do."),
            ("total([float(u @ u) for u in us])", "[float(u @ u) for u in us]",
             "The updates' length is each device's own: sum that, too."),
            ("(w / u)", "(u / w)", "That is upside down: ‖w‖ over ‖u‖."),
            ("float(w @ w) for", "float(w.sum() ** 2) for",
             "The square of a sum is not the sum of the squares."),
        ],
        judge=counted(ratio_of_chunks, _run_ratios, "{} devices, chunks of {}",
                      [(2, 3), (5, 7)], tolerance=1e-9,
                      about=["each device sends {} number{s}"]),
    ),
    3: Task(
        "your function fastest",
        fastest,
        [
            (lambda critical, overhead, speed: critical,
             "That saves examples. What a step costs without examples counts, too."),
            (lambda critical, overhead, speed: overhead * speed,
             "There the overhead takes as long as the examples. How many steps are "
             + "needed counts, too."),
            (" ** 0.5", "", "The root is missing: that is the square of the batch."),
            ("critical * overhead * speed", "critical * overhead / speed",
             "Is `speed` in seconds or in examples a second? A faster device wants a "
             + "larger batch."),
            ("critical * overhead * speed", "critical * speed / overhead",
             "The larger the overhead, the larger is the best batch."),
            ("(critical * overhead * speed) ** 0.5", "critical + overhead * speed",
             "The product of the steps and seconds has both terms, and the least is "
             + "where they balance."),
        ],
        judge=compared(fastest, [
            (1, 1, 4), (64, 0.01, 6400), (1000, 0.1, 1000), (50, 2, 3),
        ], tolerance=0.02),
    ),
}
