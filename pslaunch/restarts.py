"""A job that failed is started again: its program goes on from what it has kept."""

import time
from dataclasses import replace

from .environment import START
from .job import DEADLINE, NO_COMMAND

#: Another start would fail as this one did: a wrong flag, no such program.
IN_VAIN = (2, DEADLINE, 126, NO_COMMAND)


def check(max_restarts):
    """Raise `ValueError` when this is no number of restarts."""
    if not isinstance(max_restarts, int) or max_restarts < 0:
        raise ValueError(f"max_restarts={max_restarts!r}: give a whole number from 0")


def numbered(plan, start):
    """The same `plan` for start number `start`, which every process is told."""
    env = {role: {**own, START: str(start)} for role, own in plan.env.items()}
    return replace(plan, env=env)


def again(job, max_restarts, until=None):
    """Whether `job` should be started once more, after what became of this start.

    Not when it ended well, when it would fail in the same way (exit codes 2, 126 and
    127), when it has had its `max_restarts`, or when it is `until`, on the monotonic
    clock: the deadline is for all starts together.

    Developed in the chapter *Faults and recovery*.
    """
    in_time = until is None or time.monotonic() < until
    failed = job.returncode and job.returncode not in IN_VAIN
    return bool(failed and in_time and job.restarts < max_restarts)
