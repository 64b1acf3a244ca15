"""A job from its request to its end. It is started again if it does not become ready,
and, with `max_restarts`, if it fails: its program resumes from a checkpoint."""

import os
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from .job import DEADLINE, NO_COMMAND, Failed, Job, NotReady, earlier, name_of
from .plan import START, make
from .supervise import Start, Watch
from .temporary import Folder

#: Codes with which another start would fail as well: a wrong flag, a deadline that has
#: passed, no such program.
IN_VAIN = (2, DEADLINE, 126, NO_COMMAND)


def run(command, num_workers=2, num_servers=1, *, check=False, **settings):
    """Run `command` in each of `num_workers` workers; return the `Job` after its end.

    `command`: a list of strings; no shell reads it. `num_servers`: the number of
    servers, which, like the scheduler, run MXNet's own code. `env`: a dict of variables
    for all processes; `env_worker`, `env_server`, `env_scheduler`: for one role.
    `deadline`: seconds for the whole job, by default 900; None or 0: no limit.
    `log_dir`: a folder for complete logs; by default a temporary folder, which keeps
    the end of each log, about 16 MiB or more, and is removed with the `Job`. `stream`:
    also print lines on standard output, prefixed with their process. `attempts`: the
    maximum number of starts of a job whose nodes all listen but do not find each other
    within `ready_timeout` seconds. `verbose`: `PS_VERBOSE` of all, 0 to 2.
    `max_restarts`: the maximum number of restarts of a failed job; the variable
    `D2L_EXT_START` holds 1 plus the number of restarts so far. `check`: raise
    `LaunchError` if the job failed.

    `launcher`: by default 'ssh' with `hosts`, else 'local'. `hosts`: the path of a
    hosts file, or a list of its lines; servers and workers are placed on them in turn.
    `interface`: the network interface on every host; by default the one that reaches
    the other hosts. `sync_dst_dir`: the folder on each host to which the working
    directory is copied; by default the hosts share it. `ssh_config`: ssh's
    configuration file. `python`: the path of Python on the hosts. `submit_args`: words
    for the command that submits a job. `plan.Settings` holds the defaults.

    When a process fails, or the caller is interrupted or killed, all processes are
    ended within seconds, on other hosts within 15 s, with all their descendants, even
    those without variables or in sessions of their own. A Python worker that raises
    ends only if it has imported `d2l_ext`, or catches the exception and calls
    `os._exit`: otherwise MXNet keeps it until the others close the store. *Setting up a
    cluster* lists the limits. A process that a signal has stopped ends the job after
    30 s, with code 147.

    With the launcher local, every process listens on 127.0.0.1 only; with mpi, too, if
    neither a setting nor an allocation names hosts or an interface. Otherwise it
    listens on the address by which its host reaches the others. Servers run the code
    they receive, so keep others off that network.

    A start is repeated only while no worker can have returned from `kvstore.create`;
    what the program does before that line may happen twice.

    Raises `ValueError` for an invalid argument, `OSError` if the hosts file cannot be
    read or a log cannot be written.
    Developed in the chapter *Roles, keys and shards*.
    """
    job = carry_out(make(command, num_workers, num_servers, **settings))
    return job.check() if check else job


def carry_out(plan, is_done=lambda start, rank: False):
    """Start `plan` until it succeeds or fails for good; return the `Job`.

    `is_done`: a function of a start's number and a worker's rank that says whether its
    work is known to be done; by default only the end of the process tells.
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
    """Return the path of each node's log, in `log_dir` or in a folder that is removed
    with `job`. Raises `OSError` if it cannot be created.
    """
    folder = plan.settings.log_dir
    if folder is None:
        job.temporary = Folder("d2l_ext-job-")
        folder = job.temporary.name
    os.makedirs(folder, exist_ok=True)
    return {name: Path(folder).resolve() / f"{name}.log"
            for name in map(name_of, plan.nodes)}


def _make_room(job):
    """Make room for the logs of a start: rename those of the last start to
    `worker-0.log.start-1`, …, and remove those of another job."""
    for path in job.logs.values():
        earlier(path).unlink(missing_ok=True)
        if not job.attempts:
            for old in [path, *path.parent.glob(f"{path.name}.start-*")]:
                old.unlink(missing_ok=True)
        elif path.exists():
            path.replace(path.with_name(f"{path.name}.start-{job.attempts}"))


def _once(start, until, is_done, job):
    """Run one start, and store its outcome in `job`; False if it never got ready."""
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
    if is_full(folder):  # even if no process has noticed
        job.returncode = 1
        job.cause = (f"no space is left on the disk of {folder}: the logs are "
                     "incomplete")
    return True


def is_full(folder):
    """Return whether the disk of `folder` is full."""
    found = os.statvfs(folder)
    left = found.f_bavail if os.geteuid() else found.f_bfree
    return bool(found.f_blocks) and left == 0


def numbered(plan, start):
    """Return `plan` with the start's number in every process's environment."""
    env = {role: {**own, START: str(start)} for role, own in plan.env.items()}
    return replace(plan, env=env)


def again(job, max_restarts, until=None):
    """Return whether `job` should be restarted after the outcome of its last start.

    False if it succeeded, if it would fail in the same way (exit codes 2, 124, 126 and
    127), after `max_restarts`, or after `until` on the monotonic clock: the deadline
    covers all starts together.

    Developed in the chapter *Faults and recovery*.
    """
    in_time = until is None or time.monotonic() < until
    failed = job.returncode and job.returncode not in IN_VAIN
    return bool(failed and in_time and job.restarts < max_restarts)


class OutputLost(OSError):
    """Standard output is closed or full."""


def printable(text):
    """Return `text` with a question mark for what standard output cannot encode."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


class Shown:
    """Prints the lines of a running job, if `stream` is set."""

    is_lost = False  # whether standard output is

    def __init__(self, plan, job):
        self.job, self.stream = job, plan.settings.stream
        # The scheduler is verbose only for the launcher.
        self.hidden = () if "PS_VERBOSE" in plan.env["scheduler"] else ("scheduler",)
        self.width = max(map(len, job.logs))

    def lines(self, node, lines):
        """Print lines of a process, prefixed with its name. Raises `OutputLost`."""
        is_wanted = self.stream and node[0] not in self.hidden
        if lines and is_wanted and not self.is_lost:
            name = name_of(node).ljust(self.width)
            try:
                # As one text: line by line, 1 MiB of short lines takes seconds.
                print(printable("\n".join(f"{name} | {line}" for line in lines)),
                      flush=True)
            except OSError as error:
                self.is_lost = True
                raise OutputLost(error.errno, error.strerror) from None

    def note(self, line):
        """Keep a line of the launcher's own, and print it on standard error."""
        self.job.notes.append(line)
        if self.stream:
            with suppress(OSError):  # nobody reads it
                print(f"launch: {line}", file=sys.stderr, flush=True)
