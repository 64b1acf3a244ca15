"""How often to write a checkpoint: the formulas of Young and Daly, and a simulation.

All times in the same unit, as seconds. Failures come at random, on average one each
`mtbf` (mean time between failures), whatever has happened before.
"""

from math import exp, inf, sqrt


def young(cost, mtbf):
    """The best time of work between two checkpoints, to first order: sqrt(2 cost mtbf).

    `cost`: of writing a checkpoint. Good while it is much smaller than `mtbf`.
    Source: Young, "A first order approximation to the optimum checkpoint interval",
    1974. Developed in the chapter *Faults and recovery*.
    """
    _check(cost=cost, mtbf=mtbf)
    return sqrt(2 * cost * mtbf)


def daly(cost, mtbf):
    """The same to a higher order, which holds for expensive checkpoints too.

    Source: equation 37 of Daly, "A higher order estimate of the optimum checkpoint
    interval for restart dumps", 2006.
    """
    _check(cost=cost, mtbf=mtbf)
    if cost >= 2 * mtbf:
        return mtbf
    x = cost / (2 * mtbf)
    return sqrt(2 * cost * mtbf) * (1 + sqrt(x) / 3 + x / 9) - cost


def expected_time(work, interval, cost, restart, mtbf):
    """The mean time from begin to end of a job, with all that is done again.

    `work`: the time without failures and checkpoints. `interval`: of work between two
    checkpoints. `restart`: from a failure to the first new step; may fail itself.
    Source: Daly's complete model, equation 20, by which each of the work / interval
    pieces takes, on average, mtbf e^(restart/mtbf) (e^((interval+cost)/mtbf) - 1).
    """
    _check(work=work, interval=interval, mtbf=mtbf)
    try:
        piece = mtbf * exp(restart / mtbf) * (exp((interval + cost) / mtbf) - 1)
    except OverflowError:
        return inf
    return work / interval * piece


def simulate(work, interval, cost, restart, mtbf, random):
    """One job, lived through: a dict of its time, and where it went.

    `random`: a `random.Random`. Returns `total`, `lost` (work and checkpoints begun in
    vain, and restarts cut short), `restarts` (the time of those that succeeded),
    `checkpoints` (time), `failures` (their number). The other arguments as in
    `expected_time`; a checkpoint is written at the end too.
    """
    _check(work=work, interval=interval, mtbf=mtbf)
    done = lost = restarts = checkpoints = waiting = 0.0
    failures, left = 0, random.expovariate(1 / mtbf)  # until the next failure
    while done < work:
        piece = min(interval, work - done)
        needed = waiting + piece + cost
        if left < needed:
            lost, failures, waiting = lost + left, failures + 1, restart
            left = random.expovariate(1 / mtbf)
            continue
        left -= needed
        done, restarts = done + piece, restarts + waiting
        checkpoints, waiting = checkpoints + cost, 0.0
    return {"total": done + lost + restarts + checkpoints, "lost": lost,
            "restarts": restarts, "checkpoints": checkpoints,
            "failures": failures}  # fmt: skip


def _check(**values):
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name}={value!r}: give a time above 0")
