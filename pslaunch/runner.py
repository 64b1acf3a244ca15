"""A job from its request to its end: started again when it did not become ready, and
when it failed and may be, for its program goes on from what it has kept."""

import os
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from .environment import START
from .job import DEADLINE, NO_COMMAND, Failed, Job, NotReady, earlier, name_of
from .plan import make
from .start import Start
from .supervise import Watch
from .temporary import Folder

#: Another start would fail as this one did: a wrong flag, no such program.
IN_VAIN = (2, DEADLINE, 126, NO_COMMAND)


def run(command, num_workers=2, num_servers=1, *, check=False, **settings):
    """Run `command` in each of `num_workers` workers; return the `Job` when it ended.

    `command`: a list of strings; no shell reads it. `num_servers`: servers; they and
    the scheduler run MXNet's own code. `env`: variables for all, as a dict;
    `env_worker`, `env_server`, `env_scheduler`: for a role. `deadline`: seconds for
    everything, default 900, None or 0 for no limit. `log_dir`: a folder for the
    logs, which are kept whole; default one that is removed with the job, and has the
    end of each log, 16 MiB or more. `stream`: also print lines on standard output,
    with its process in front. `attempts`, `ready_timeout`: how often the job may be
    started, when its nodes all listen and have not found each other after so many
    seconds. `verbose`: `PS_VERBOSE` of all, 0 to 2. `max_restarts`: how often a job
    that failed is started again; the variable `D2L_EXT_START` tells its processes
    which start it is, from 1. `check`: raise `LaunchError` when the job failed.

    `launcher`: default 'ssh' with `hosts`, else 'local'. `hosts`: the path of a hosts
    file, or a list of its lines; servers and workers are placed on them in turn.
    `interface`: the network interface of all; default: by which hosts reach each other.
    `sync_dst_dir`: where the working directory is copied to on each host; default: they
    share it. `ssh_config`: the file that ssh reads. `python`: on the hosts.
    `submit_args`: words for the command that submits a job. Defaults: `plan.Settings`.

    When one process ends with a code, or by a signal, or the caller is interrupted or
    killed, all are ended within seconds, on other hosts within 15: what they have
    started too, even without variables and in a session of its own. A Python worker
    that raises ends only if it has imported `d2l_ext`, or caught the exception to leave
    by `os._exit`: else MXNet keeps it until the others close the store, too.
    *Setting up a cluster* says what is beyond that. A process that a signal has stopped
    ends the job after 30 s, with code 147.

    Without hosts, every process listens on 127.0.0.1 only; with hosts, on the address
    by which its host reaches the others: servers run what they are sent, so let nobody
    else onto that network.

    A start is repeated only while no worker can have come back from
    `kvstore.create`; what the program does before that line may be done twice.

    Raises `ValueError` for a wrong argument, `OSError` when a log cannot be written.
    Developed in the chapter *Roles, keys and shards*.
    """
    job = carry_out(make(command, num_workers, num_servers, **settings))
    return job.check() if check else job


def carry_out(plan, is_done=lambda start, rank: False):
    """Start `plan` until it ends well or for good; the `Job`.

    `is_done`: called with the number of a start and the rank of a worker; whether its
    work is known to be done. By default it is when the process ends.
    """
    job, settings, begin = Job(), plan.settings, time.monotonic()
    until = begin + settings.deadline if settings.deadline else None
    job.logs = _logs(job, plan)
    shown, tries = Shown(plan, job), 0
    while True:
        _make_room(job)
        job.attempts += 1
        tries += 1
        number = job.restarts + 1
        start = Start(numbered(plan, number), shown)
        if not _once(start, until, partial(is_done, number), job):
            shown.note(f"start {job.attempts} did not become ready: {job.cause}")
            if tries < settings.attempts:
                continue
            job.cause += f", in {tries} starts"
        if not again(job, settings.max_restarts, until):
            job.seconds = time.monotonic() - begin
            return job
        job.restarts += 1
        tries = 0
        shown.note(f"{job.cause}; restart {job.restarts} of {settings.max_restarts}")


def _logs(job, plan):
    """The path of each node's log, in the folder that was named, else in one that goes
    when `job` does. Raises `OSError` when there can be none."""
    folder = plan.settings.log_dir
    if folder is None:
        job.temporary = Folder("d2l_ext-job-")
        folder = job.temporary.name
    os.makedirs(folder, exist_ok=True)
    return {name: Path(folder).resolve() / f"{name}.log"
            for name in map(name_of, plan.nodes)}


def _make_room(job):
    """For the logs of a start: those of the one before are renamed,
    `worker-0.log.start-1`, …, and those of another job removed."""
    for path in job.logs.values():
        earlier(path).unlink(missing_ok=True)
        if not job.attempts:
            path.unlink(missing_ok=True)
        elif path.exists():
            path.replace(path.with_name(f"{path.name}.start-{job.attempts}"))


def _once(start, until, is_done, job):
    """Note in `job` what became of a start; whether it became ready, or failed."""
    job.returncode, job.cause, job.culprit = 0, None, None
    folder = next(iter(job.logs.values())).parent
    try:
        with start:
            Watch(start, until, is_done).run()
    except Failed as error:
        job.returncode, job.cause = error.code, str(error)
        if is_full(folder):
            job.cause += f"; no space is left on the disk of {folder}"
        job.culprit = error.culprit and name_of(error.culprit)
        return not isinstance(error, NotReady)
    if is_full(folder):  # no process need have noticed
        job.returncode = 1
        job.cause = (f"no space is left on the disk of {folder}: what the processes "
                     "printed is not all there")
    return True


def is_full(folder):
    """Whether nothing more can be written to files in `folder`."""
    found = os.statvfs(folder)
    left = found.f_bavail if os.geteuid() else found.f_bfree
    return bool(found.f_blocks) and left == 0


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


class OutputLost(OSError):
    """Standard output takes no more lines."""


class Shown:
    """What is printed of a job while it runs, when that is wanted."""

    is_lost = False  # nobody can read it any more

    def __init__(self, plan, job):
        self.job, self.stream = job, plan.settings.stream
        # The scheduler is verbose for the launcher's sake.
        self.hidden = () if "PS_VERBOSE" in plan.env["scheduler"] else ("scheduler",)
        self.width = max(map(len, job.logs))

    def lines(self, node, lines):
        """Lines of a process, each with its name in front. Raises `OutputLost`."""
        is_wanted = self.stream and node[0] not in self.hidden
        if lines and is_wanted and not self.is_lost:
            name = name_of(node).ljust(self.width)
            try:
                print(*(f"{name} | {line}" for line in lines), sep="\n", flush=True)
            except OSError as error:
                self.is_lost = True
                raise OutputLost(error.errno, error.strerror) from None

    def note(self, line):
        """A line of the launcher's own."""
        self.job.notes.append(line)
        if self.stream:
            print(f"launch: {line}", file=sys.stderr, flush=True)
