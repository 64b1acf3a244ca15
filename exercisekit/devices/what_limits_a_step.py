"""Exercises of the chapter *What limits a step*."""

import numpy

from ..question import Question, Task, by_cases, compared, shown


def least_seconds(operators, peak, bandwidth):
    """Return the sum of the operators' larger bounds: by flops or by bytes."""
    return sum(max(flops / peak, nbytes / bandwidth) for flops, nbytes in operators)


def latency(sizes, times):
    """Return α of the line with the smallest relative errors: (α + n β) / t near 1."""
    n, t = numpy.array(sizes, dtype=float), numpy.array(times)
    rows = numpy.stack([1 / t, n / t], axis=1)
    alpha, _ = numpy.linalg.lstsq(rows, numpy.ones(len(t)), rcond=None)[0]
    return alpha


def _judge_latency(function, alpha, beta):
    sizes = [4**i for i in range(7, 14)]
    noise = numpy.random.RandomState(367).uniform(0.98, 1.02, len(sizes))
    said = function(sizes, [(alpha + n * beta) * e for n, e in zip(sizes, noise)])
    if numpy.ndim(said):
        return f"it returns {shown(said)}, not one number."
    wrong = f"it returns {said * 1e6:.1f} µs instead of {alpha * 1e6:.0f} µs."
    return "" if abs(said - alpha) <= 0.1 * alpha else wrong


def larger_of_the_sums(operators, peak, bandwidth):
    flops = sum(flops for flops, _ in operators)
    return max(flops / peak, sum(nbytes for _, nbytes in operators) / bandwidth)


def beta_instead(sizes, times):
    n, t = numpy.array(sizes, dtype=float), numpy.array(times)
    rows = numpy.stack([1 / t, n / t], axis=1)
    return numpy.linalg.lstsq(rows, numpy.ones(len(t)), rcond=None)[0][1]


QUESTIONS = {
    1: Question(
        "the smallest d",
        192,
        [
            (48, "Each number has 4 bytes."),
            (96, "In single precision, each number has 4 bytes."),
            (384, "A multiplication and an addition are two flops."),
            (128, "Two matrices are read, and one is written."),
        ],
    ),
    2: Task(
        "a function `least_seconds(operators, peak, bandwidth)`",
        least_seconds,
        [
            (larger_of_the_sums,
             "That is the larger of the two sums, but each operator has its own larger "
             + "bound."),
            (lambda operators, peak, bandwidth:
             sum(flops / peak + nbytes / bandwidth for flops, nbytes in operators),
             "An operator reads while it computes: only the larger bound counts."),
            (lambda operators, peak, bandwidth:
             sum(flops for flops, _ in operators) / peak,
             "Memory bounds some of the operators: their bytes take longer."),
        ],
        judge=compared(least_seconds, [
            ([(30, 1)], 10, 2), ([(20, 8)], 10, 2), ([(30, 1), (20, 8)], 10, 2),
            ([(1, 7), (9, 2), (6, 6), (0, 5)], 3.0, 2.5),
            ([(2e9, 12e6), (16e6, 201e6)], 1e11, 2.5e10),
        ]),
    ),
    3: Task(
        "a function `latency(sizes, times)`",
        latency,
        [
            (lambda sizes, times: numpy.polyfit(sizes, times, 1)[1],
             "A fit of seconds depends most on the longest copies: two percent of the "
             + "time of one is many latencies."),
            (lambda sizes, times: times[0],
             "The shortest copy has bytes, too: how long does a copy of none take?"),
            (beta_instead, "That is β, the seconds per byte."),
        ],
        judge=by_cases(_judge_latency, "latency {} s, {} s per byte", [
            (20e-6, 1e-9), (80e-6, 2e-9),
        ]),
    ),
}
