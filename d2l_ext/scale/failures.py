"""Failures and checkpoints: how often to write one, and what a failure costs.

All times have one unit, here seconds.
"""

from itertools import accumulate
from math import exp, expm1, inf, sqrt
from typing import NamedTuple

from ..checks import at_least_zero


def cluster_mtbf(device_mtbf, devices):
    """Return the mean seconds between failures of any of `devices`, independent."""
    return device_mtbf / devices


def young(write, mtbf):
    """Return the checkpoint interval, in seconds of work, that loses the least time:
    √(2·C·M).

    `write` C: seconds to write a checkpoint. `mtbf` M: mean time between failures.
    A failure loses half an interval of work on average, a checkpoint C.
    Source: Young, "A First Order Approximation to the Optimum Checkpoint Interval"
    (1974). Raises `ValueError` for a C below 0, and an M that is not above 0.
    Developed in the chapter *One to 4,096 devices*.
    """
    _check(write, mtbf)
    return sqrt(2 * write * mtbf)


def daly(write, mtbf):
    """Return the interval of `young` to a higher order, for an M not much longer than
    C.

    √(2CM)·(1 + √(C/2M)/3 + (C/2M)/9) − C for C < 2M, else M.
    Source: Daly, "A Higher Order Estimate of the Optimum Checkpoint Interval for
    Restart Dumps" (2006). Raises as `young` does.
    """
    _check(write, mtbf)
    ratio = write / (2 * mtbf)
    if ratio >= 1:
        return mtbf
    return sqrt(2 * write * mtbf) * (1 + sqrt(ratio) / 3 + ratio / 9) - write


def expected_seconds(work, interval, write, restart, mtbf):
    """Return the expected seconds for `work` seconds of computing, with random
    failures.

    M·e^(R/M)·(e^((τ + C)/M) − 1)·work/τ, where τ is the `interval`. Failures follow a
    Poisson process, even during a `write` and a `restart` (R), and a checkpoint is
    written after each interval. Without failures (`mtbf` infinite): work·(1 + C/τ).
    Infinite where the result would overflow.
    Raises as `young` does, and for an `interval` that is not above 0.
    Source: Daly (2006), equation for the complete model.
    """
    _check(write, mtbf, interval)
    if mtbf == inf:
        return work * (1 + write / interval)
    try:
        each = mtbf * exp(restart / mtbf) * expm1((interval + write) / mtbf)
    except OverflowError:
        return inf
    return each * work / interval if each < inf else inf


class SimulatedJob(NamedTuple):
    """The total `seconds`, and the number of `failures`."""

    seconds: float
    failures: int


def at_random(mtbf, random):
    """Yield times of failures endlessly: memoryless, one per `mtbf` on average.

    `mtbf`: finite. `random`: a `random.Random`. For `simulate`.
    """
    return accumulate(iter(lambda: random.expovariate(1 / mtbf), None))


def simulate(work, interval, write, restart, failures):
    """Simulate `work` seconds of computing with failures at the given times.

    `failures`: an iterable of ascending times in seconds; a restart can fail, too. A
    checkpoint follows each `interval` of work, including the last. A failure loses the
    work since the last checkpoint. Returns a `SimulatedJob`. Raises `ValueError`
    for an interval that is not above 0, and for a negative time to write.
    """
    _check(write, inf, interval)
    times, failed = iter(failures), 0
    failure, done = next(times, inf), 0.0
    begin, pause = 0.0, 0.0  # of an attempt: restart, piece of work, checkpoint
    while work - done > 1e-9 * min(interval, work):  # a smaller rest: from rounding
        piece = min(interval, work - done)
        end = begin + pause + piece + write
        if end <= failure:
            begin, pause, done = end, 0.0, done + piece
        else:
            begin, pause, failed = failure, restart, failed + 1
            failure = next(times, inf)
    return SimulatedJob(begin, failed)


def _check(write, mtbf, interval=1):
    at_least_zero("the time to write a checkpoint", write)
    if not mtbf > 0:
        raise ValueError(f"the mean time between failures must be above 0, not {mtbf}")
    if not interval > 0:
        raise ValueError(f"an interval must be above 0 seconds, not {interval}")
