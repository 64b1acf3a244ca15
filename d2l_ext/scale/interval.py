"""How often to write a checkpoint, with failures drawn at random.

The formulas and the simulation are those of `cost_model.restarts`. All times in the
same unit, as seconds. Failures come at random, on average one each `mtbf` (mean time
between failures), whatever has happened before.
"""

from itertools import accumulate
from math import inf

from . import restarts


def young(cost, mtbf):
    """The best time of work between two checkpoints: `restarts.young`.

    `cost`: of writing a checkpoint. Raises `ValueError` for a time that is not above 0.
    Developed in the chapter *Faults and recovery*.
    """
    _check(cost=cost, mtbf=mtbf)
    return restarts.young(cost, mtbf)


def daly(cost, mtbf):
    """The same to a higher order, for expensive checkpoints too: `restarts.daly`."""
    _check(cost=cost, mtbf=mtbf)
    return restarts.daly(cost, mtbf)


def expected_time(work, interval, cost, restart, mtbf):
    """The mean time of a job, with all that is done again: `restarts.expected`.

    `work`: the time without failures and checkpoints. `interval`: of work between two
    checkpoints. `restart`: from a failure to the first new step; may fail itself.
    Infinite where the number is too large to be one.
    """
    _check(work=work, interval=interval, mtbf=mtbf)
    try:
        return restarts.expected(work, interval, cost, restart, mtbf)
    except OverflowError:
        return inf


def simulate(work, interval, cost, restart, mtbf, random):
    """One job, lived through: a dict of its time, and where it went.

    `random`: a `random.Random`. Returns `total`, `lost` (work and checkpoints begun in
    vain, and restarts cut short), `restarts` (the time of those that succeeded),
    `checkpoints` (time), `failures` (their number). The other arguments as in
    `expected_time`; a checkpoint is written at the end too.
    """
    _check(work=work, interval=interval, mtbf=mtbf)
    failures = accumulate(iter(lambda: random.expovariate(1 / mtbf), None))
    lived = restarts.simulate(work, interval, cost, restart, failures)
    checkpoints = lived.written * cost
    lost = lived.seconds - work - checkpoints - lived.restarting
    return {"total": lived.seconds, "lost": lost, "restarts": lived.restarting,
            "checkpoints": checkpoints, "failures": lived.failures}  # fmt: skip


def _check(**values):
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name}={value!r}: give a time above 0")
