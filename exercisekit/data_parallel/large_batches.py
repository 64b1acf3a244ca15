"""Exercises of the chapter *Large batches*."""

import numpy

from ..counts import counted
from ..question import Question, Task, compared


def ratios(ws, us, total):
    w_squared = total([float(w @ w) for w in ws])
    u_squared = total([float(u @ u) for u in us])
    return [(w / u) ** 0.5 for w, u in zip(w_squared, u_squared)]


def _run_ratios(function, counts, k, size):
    rng = numpy.random.RandomState(k)
    ws, us = counts.keep(list(rng.randn(k, size)), list(rng.randn(k, size)))
    total = counts.calls(
        "each device sends {} number{s}",
        lambda numbers: [sum(numbers) for _ in numbers],
        lambda numbers: numpy.size(numbers[0]),
    )
    return {f"device {i}": x for i, x in enumerate(function(ws, us, total))}


def _of_own_chunks(ws, us, total):
    norm = numpy.linalg.norm
    return [norm(w) / norm(u) for w, u in zip(ws, us)]


def _sums_of_lengths(ws, us, total):
    w_sum, u_sum = (total([float(x @ x) ** 0.5 for x in xs]) for xs in (ws, us))
    return [w / u for w, u in zip(w_sum, u_sum)]


def fastest(critical, overhead, speed):
    # Where (1 + critical / B) * (overhead + B / speed) is smallest.
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
        "a function `ratios(ws, us, total)`",
        ratios,
        [
            (_of_own_chunks,
             "Each device uses the lengths of its own chunks, not the layer's."),
            (lambda ws, us, total: [ratio**2 for ratio in ratios(ws, us, total)],
             "These are the squares of the ratios: the root is missing."),
            (_sums_of_lengths, "Lengths cannot be added, but their squares can."),
        ],
        judge=counted(ratios, _run_ratios, "{} devices, chunks of {}",
                      [(2, 3), (5, 7)], tolerance=1e-9,
                      about=["each device sends {} number{s}"]),
    ),
    3: Task(
        "a function `fastest(critical, overhead, speed)`",
        fastest,
        [
            (lambda critical, overhead, speed: critical,
             "This ignores the overhead of a step. The larger it is, the larger the "
             + "best batch is."),
            (lambda critical, overhead, speed: overhead * speed,
             "Then the overhead takes as long as the examples. The number of steps "
             + "depends on the batch, too."),
            (lambda critical, overhead, speed: critical * overhead * speed,
             "That is the square of the batch size: the root is missing."),
        ],
        judge=compared(fastest, [
            (1, 1, 4), (64, 0.01, 6400), (1000, 0.1, 1000), (50, 2, 3),
            (500, 20, 10000),
        ], tolerance=0.02),
    ),
}
