"""A job from its request to its end: started again when it did not become ready, and
when it failed and may be, for its program goes on from what it has kept."""

import os
import shutil
import sys
import time
from dataclasses import replace
from functools import partial

from .environment import START
from .job import (
    DEADLINE,
    NO_COMMAND,
    NOT_READY,
    Failed,
    Job,
    NotReady,
    keep_old,
    log_folder,
    path_of,
)
from .local import Local
from .plan import make
from .start import Start
from .supervise import Watch

#: Another start would fail as this one did: a wrong flag, no such program.
IN_VAIN = (2, DEADLINE, 126, NO_COMMAND)


def run(command, num_workers=2, num_servers=1, *, check=False, **settings):
    """Run `command` in each of `num_workers` workers; return the `Job` when it ended.

    `command`: a list of strings; no shell reads it. `num_servers`: servers; they and
    the scheduler run MXNet's own code. `env`: variables for all, as a dict;
    `env_worker`, `env_server`, `env_scheduler`: for a role. `deadline`: seconds for
    everything, None for no limit. `log_dir`: a folder for the logs; default one that
    is removed with the job. `stream`: also print every line on standard output,
    with its process in front. `attempts`, `ready_timeout`: how often the job may be
    started, when its nodes all listen and have not found each other after so many
    seconds. `verbose`: `PS_VERBOSE` of all, 0 to 2. `max_restarts`: how often a job
    that failed is started again; the variable `D2L_EXT_START` tells its processes
    which start it is, from 1. `check`: raise `LaunchError` when the job failed.

    `settings`: all of these but the first three, and `check`; their defaults stand in
    `plan.Settings`. `launcher`: default 'ssh' with `hosts`, else 'local'. On which
    hosts, and how they are reached, `hosts`, `interface`, `sync_dst_dir`, `ssh_config`,
    `python` and `submit_args` say, of which `plan.Settings` tells; servers and workers
    are placed on the hosts in turn.

    When one process fails, or the caller is interrupted or killed, all are ended
    within seconds, on other hosts within 15: what they have started too, even without
    variables and in a session of its own. *Setting up a cluster* says what is beyond
    that. A process that a signal has stopped ends the job after 30 s, with code 147.

    Without hosts, every process listens on 127.0.0.1 only; with hosts, on the address
    by which its host reaches the others: servers run what they are sent, so let nobody
    else onto that network.

    A start is repeated only while no worker can have come back from
    `kvstore.create`; what the program does before that line may be done twice.

    Raises `ValueError` for a wrong argument, `OSError` when a log cannot be written.
    Developed in the chapter *Roles, keys and shards*.
    """
    return carry_out(make(command, num_workers, num_servers, **settings), check)


def carry_out(plan, check=False, is_done=lambda start, rank: False):
    """Start `plan` until it ends well or for good; the `Job`.

    `is_done`: called with the number of a start and the rank of a worker; whether its
    work is known to be done. By default it is when the process ends.
    """
    job, settings, begin = Job(), plan.settings, time.monotonic()
    until = begin + settings.deadline if settings.deadline else None
    if _is_there(plan):
        folder = log_folder(job, settings.log_dir)
        job.logs = {f"{r}-{i}": path_of(folder, r, i) for r, i in plan.nodes}
        shown = Shown(plan, job)

        def new_start():
            if job.attempts:
                keep_old(folder, plan.nodes, job.attempts)
            job.attempts += 1
            number = job.restarts + 1
            start = Start(numbered(plan, number), folder, shown.note)
            return start, Watch(start, until, settings.ready_timeout, shown.line,
                                partial(is_done, number))  # fmt: skip

        _until_ready(new_start, settings.attempts, job, shown)
        while again(job, settings.max_restarts, until):
            job.restarts += 1
            shown.note(f"{job.cause}; restart {job.restarts} of "
                       f"{settings.max_restarts}")  # fmt: skip
            _until_ready(new_start, settings.attempts, job, shown)
    else:
        job.returncode, job.cause = NO_COMMAND, f"no such command: {plan.command[0]!r}"
    job.seconds = time.monotonic() - begin
    return job.check() if check else job


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


def _is_there(plan):
    """Whether there is such a command here; of other hosts, their agents tell."""
    if plan.launcher is not Local:
        return True
    path = plan.env["worker"].get("PATH", os.environ.get("PATH"))
    return shutil.which(plan.command[0], path=path)


def _until_ready(new_start, attempts, job, shown):
    """Start the job, at most `attempts` times, until it is ready; then to its end."""
    for attempt in range(1, attempts + 1):
        if _once(*new_start(), job, shown, attempt):
            break


def _once(start, watch, job, shown, attempt):
    """One start: note in `job` what became of it; whether that is the end of it."""
    notes, culprit, job.returncode, job.cause = [], None, 0, None
    try:
        with start:
            notes = watch.run()
    except NotReady as error:
        notes = [f"start {job.attempts} did not become ready: {error}"]
        job.returncode, job.cause = NOT_READY, f"{error}, in {attempt} starts"
        culprit = error.culprit
    except Failed as error:
        job.returncode, job.cause, culprit = error.code, str(error), error.culprit
    job.culprit = culprit and "{}-{}".format(*culprit)
    for node, line in start.lines:  # printed while it was ended
        shown.line(node, line)
    for line in notes:
        shown.note(line)
    return job.returncode != NOT_READY


class Shown:
    """What is printed of a job while it runs, when that is wanted."""

    def __init__(self, plan, job):
        self.job, self.stream = job, plan.settings.stream
        # The scheduler is verbose for the launcher's sake.
        self.hidden = () if "PS_VERBOSE" in plan.env["scheduler"] else ("scheduler",)
        self.width = max(map(len, job.logs))

    def line(self, node, line):
        """A line of a process, with its name in front."""
        if self.stream and node[0] not in self.hidden:
            name = "{}-{}".format(*node)
            print(f"{name.ljust(self.width)} | {line}", flush=True)

    def note(self, line):
        """A line of the launcher's own."""
        self.job.notes.append(line)
        if self.stream:
            print(f"launch: {line}", file=sys.stderr, flush=True)
