"""Exercises of the chapter *What limits a step*."""

import numpy

from ..question import Question, Task, by_cases, compared


def least_seconds(operators, peak, bandwidth):
    """Operators one after the other, each as long as the longer of its two needs."""
    return sum(max(flops / peak, n / bandwidth) for flops, n in operators)


def latency(sizes, times):
    """α of the line whose relative errors are least."""
    n, t = numpy.array(sizes, dtype=float), numpy.array(times)
    rows = numpy.stack([1 / t, n / t], axis=1)
    return numpy.linalg.lstsq(rows, numpy.ones(len(t)), rcond=None)[0][0]


def _judge_latency(function, alpha, beta):
    sizes = [4**i for i in range(7, 14)]
    noise = numpy.random.RandomState(4).uniform(0.98, 1.02, len(sizes))
    said = function(sizes, [(alpha + n * beta) * e for n, e in zip(sizes, noise)])
    wrong = f"it says {said * 1e6:.1f} µs."
    return "" if abs(said - alpha) <= 0.1 * alpha else wrong


QUESTIONS = {
    1: Question(
        "the smallest d",
        192,
        [
            (48, "Each number has 4 bytes."),
            (96, "A multiplication and an addition are two flops."),
            (128, "Two matrices are read, and one is written."),
        ],
    ),
    2: Task(
        "a function of operators, peak and bandwidth",
        least_seconds,
        [
            (lambda operators, peak, bandwidth: max(
                 sum(f for f, _ in operators) / peak,
                 sum(n for _, n in operators) / bandwidth,
             ),
             "The larger of the two sums: but each operator waits for its own need."),
            ("max(flops / peak, n / bandwidth)", "flops / peak + n / bandwidth",
             "An operator reads while it computes: the longer of the two counts."),
            ("max(flops", "min(flops",
             "The shorter need does not end an operator: the longer does."),
            ("max(flops / peak, n / bandwidth)", "flops / peak",
             "Some operators are bound by memory: their bytes take longer."),
            ("max(flops / peak, n / bandwidth)", "n / bandwidth",
             "Some operators are bound by arithmetic: their flops take longer."),
            ("sum(max", "max(max",
             "That is the longest of them. They run one after the other."),
            ("flops / peak, n / bandwidth", "flops / bandwidth, n / peak",
             "Flops belong to the peak, bytes to the bandwidth."),
        ],
        judge=compared(least_seconds, [
            ([], 10, 2), ([(30, 1)], 10, 2), ([(20, 8)], 10, 2),
            ([(30, 1), (20, 8)], 10, 2), ([(1, 7), (9, 2), (6, 6), (0, 5)], 3.0, 2.5),
        ]),
    ),
    3: Task(
        "a function of sizes and times",
        latency,
        [
            (lambda sizes, times: numpy.polyfit(sizes, times, 1)[1],
             "A fit that minds seconds minds the longest copies: two per cent of one "
             + "are many latencies."),
            (lambda sizes, times: times[0],
             "The shortest copy still takes its bytes: what would none take?"),
            (lambda sizes, times: times[0] - times[-1],
             "Seconds of a large copy do not tell those of a small one, but their rate "
             + "does."),
            ("rcond=None)[0][0]", "rcond=None)[0][1]",
             "That is β, the seconds of a byte."),
            ("numpy.ones(len(t))", "t",
             "Rows and right side have to be divided by the same: by each time."),
            ("rcond=None)[0][0]", "rcond=None)[0][0] * 1e6",
             "That is in microseconds: seconds are asked for."),
        ],
        judge=by_cases(_judge_latency, "{} s, and {} s a byte", [
            (20e-6, 1e-9), (80e-6, 2e-9),
        ]),
    ),
}
