"""A job from its request to its end, started again when it did not become ready."""

import os
import shutil
import sys
import time
from functools import partial

from . import local, restarts
from .failures import Failed, NotReady
from .job import NO_COMMAND, NOT_READY, Job, log_folder
from .logs import keep_old, path_of
from .plan import make
from .start import Start
from .supervise import Watch

#: Seconds in which nodes that all listen should have passed the first barrier.
READY_TIMEOUT = 15.0


def run(command, num_workers=2, num_servers=1, *, env=None, env_worker=None,
        env_server=None, env_scheduler=None, deadline=60.0, log_dir=None,
        stream=False, attempts=3, ready_timeout=READY_TIMEOUT, launcher=None,
        verbose=0, max_restarts=0, check=False, **where):  # fmt: skip
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

    `launcher`: default 'ssh' with `hosts`, else 'local'. `where`: on which hosts, and
    how they are reached: `hosts`, `interface`, `sync_dst_dir`, `ssh_config`, `python`,
    `submit_args`, of which `plan.Where` tells; `hosts` is the path of a hosts file or
    a list of its lines. Servers and workers are placed on the hosts in turn.

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
    plan = make(command, num_workers, num_servers, env, env_worker, env_server,
                env_scheduler, launcher, verbose, **where)  # fmt: skip
    return supervise(plan, Job(), deadline, log_dir, stream, attempts, ready_timeout,
                     max_restarts, check)  # fmt: skip


def supervise(plan, job, deadline, log_dir, stream, attempts, ready_timeout,
              max_restarts, check, is_done=lambda start, rank: False):  # fmt: skip
    """Start `plan` until it ends well or for good, and fill and return `job`.

    `is_done`: called with the number of a start and the rank of a worker; whether its
    work is known to be done. By default it is when the process ends.
    """
    if attempts < 1:
        raise ValueError(f"attempts={attempts}: a job is started once at least")
    restarts.check(max_restarts)
    begin = time.monotonic()
    until = begin + deadline if deadline else None
    if _is_there(plan):
        folder = log_folder(job, log_dir)
        job.logs = {f"{r}-{i}": path_of(folder, r, i) for r, i in plan.nodes}
        shown = Shown(plan, job, stream)

        def new_start():
            if job.attempts:
                keep_old(folder, plan.nodes, job.attempts)
            job.attempts += 1
            number = job.restarts + 1
            numbered = restarts.numbered(plan, number)
            start = Start(numbered, folder, stream, shown.note)
            return start, Watch(start, until, ready_timeout, shown.line,
                                partial(is_done, number))  # fmt: skip

        _until_ready(new_start, attempts, job, shown)
        while restarts.again(job, max_restarts, until):
            job.restarts += 1
            shown.note(f"{job.cause}; restart {job.restarts} of {max_restarts}")
            _until_ready(new_start, attempts, job, shown)
    else:
        job.returncode, job.cause = NO_COMMAND, f"no such command: {plan.command[0]!r}"
    job.seconds = time.monotonic() - begin
    return job.check() if check else job


def _is_there(plan):
    """Whether there is such a command here; of other hosts, their agents tell."""
    if plan.launcher is not local:
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
    try:
        with start:
            notes = watch.run()
    except NotReady as error:
        notes = [f"start {job.attempts} did not become ready: {error}"]
        job.returncode, job.cause = NOT_READY, f"{error}, in {attempt} starts"
        job.culprit = "{}-{}".format(*error.culprit)
    except Failed as error:
        notes = []
        job.returncode, job.cause = error.code, str(error)
        job.culprit = error.culprit and "{}-{}".format(*error.culprit)
    else:
        job.returncode, job.cause, job.culprit = 0, None, None
    for node, line in start.lines:  # printed while it was ended
        shown.line(node, line)
    for line in notes:
        shown.note(line)
    return job.returncode != NOT_READY


class Shown:
    """What is printed of a job while it runs, when that is wanted."""

    def __init__(self, plan, job, stream):
        self.job, self.stream = job, stream
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
