"""A job from its request to its end, started again when it did not become ready."""

import os
import shutil
import sys
import time
from dataclasses import dataclass
from types import ModuleType

from . import environment, local
from .job import NO_COMMAND, NOT_READY, Job, log_folder
from .logs import keep_old, path_of
from .start import Start
from .supervise import Failed, NotReady, Watch

LAUNCHERS = {"local": local}
#: Seconds in which nodes that all listen should have passed the first barrier.
READY_TIMEOUT = 15.0


@dataclass(frozen=True)
class Plan:
    """What is to be started: `nodes` and `env` by role, one command for workers."""

    command: list
    nodes: list
    env: dict
    verbose: int = 0
    launcher: ModuleType = local


def run(command, num_workers=2, num_servers=1, *, env=None, env_worker=None,
        env_server=None, env_scheduler=None, deadline=60.0, log_dir=None,
        stream=False, attempts=3, ready_timeout=READY_TIMEOUT, launcher="local",
        verbose=0, check=False):  # fmt: skip
    """Run `command` in each of `num_workers` workers; return the `Job` when it ended.

    `command`: a list of strings; no shell reads it. `num_servers`: servers; they and
    the scheduler run MXNet's own code. `env`: variables for all, as a dict;
    `env_worker`, `env_server`, `env_scheduler`: for a role. `deadline`: seconds for
    everything, None for no limit. `log_dir`: a folder for the logs; default one that
    is removed with the job. `stream`: also print every line on standard output,
    with its process in front. `attempts`, `ready_timeout`: how often the job may be
    started, when its nodes all listen and have not found each other after so many
    seconds. `verbose`: `PS_VERBOSE` of all, 0 to 2. `check`: raise `LaunchError`
    when the job failed.

    When one process fails, or the caller is interrupted or killed, all are ended
    within seconds. Every process listens on 127.0.0.1 only.

    A start is repeated only while no worker can have come back from
    `kvstore.create`; what the program does before that line may be done twice.

    Raises `ValueError` for a wrong argument, `OSError` when a log cannot be written.
    Developed in the chapter *Roles, keys and shards*.
    """
    plan = make_plan(command, num_workers, num_servers, env, env_worker, env_server,
                     env_scheduler, launcher, verbose)  # fmt: skip
    if attempts < 1:
        raise ValueError(f"attempts={attempts}: a job is started once at least")
    return supervised(plan, Job(), deadline, log_dir, stream, attempts, ready_timeout,
                      check)  # fmt: skip


def make_plan(command, num_workers, num_servers, env=None, env_worker=None,
              env_server=None, env_scheduler=None, launcher="local",
              verbose=0):  # fmt: skip
    """Check what `run` was given, and return it as a `Plan`. Raises `ValueError`."""
    if isinstance(command, (str, bytes)) or not command:
        raise ValueError(f"command={command!r}: give a list of words, as in ['python', "
                         "'train.py']")  # fmt: skip
    for name, count in (("num_workers", num_workers), ("num_servers", num_servers)):
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"{name}={count!r}: give a whole number from 1")
    if launcher not in LAUNCHERS:
        raise ValueError(f"launcher={launcher!r}: there is {', '.join(LAUNCHERS)}")
    if verbose not in (0, 1, 2):
        raise ValueError(f"verbose={verbose!r}: PS_VERBOSE is 0, 1 or 2")
    command = [os.fspath(word) for word in command]
    if any("\0" in word for word in command):
        raise ValueError("a word of the command has a null character in it")
    common = environment.check(env)
    roles = {"worker": env_worker, "server": env_server, "scheduler": env_scheduler}
    env = {role: {**common, **environment.check(own)} for role, own in roles.items()}
    nodes = environment.names(num_workers, num_servers)
    return Plan(command, nodes, env, verbose, LAUNCHERS[launcher])


def supervised(plan, job, deadline, log_dir, stream, attempts, ready_timeout, check):
    """Start `plan` until it is ready, wait for its end, and fill `job`."""
    begin = time.monotonic()
    until = begin + deadline if deadline else None
    path = plan.env["worker"].get("PATH", os.environ.get("PATH"))
    if not shutil.which(plan.command[0], path=path):
        job.returncode, job.cause = NO_COMMAND, f"no such command: {plan.command[0]!r}"
        return job.check() if check else job
    folder = log_folder(job, log_dir)
    job.logs = {f"{r}-{i}": path_of(folder, r, i) for r, i in plan.nodes}
    width = max(map(len, job.logs))

    def show(node, line):
        if stream:
            print(f"{'-'.join(map(str, node)).ljust(width)} | {line}", flush=True)

    def note(line):
        job.notes.append(line)
        if stream:
            print(f"launch: {line}", file=sys.stderr, flush=True)

    while job.attempts < attempts:
        job.attempts += 1
        try:
            with Start(plan, folder, None if log_dir else folder) as start:
                for line in Watch(start, until, ready_timeout, show).run():
                    note(line)
            job.returncode, job.cause, job.culprit = 0, None, None
            break
        except NotReady as error:
            note(f"start {job.attempts} did not become ready: {error}")
            job.returncode, job.cause = NOT_READY, f"{error}, in {job.attempts} starts"
            job.culprit = "{}-{}".format(*error.culprit)
            if job.attempts < attempts:
                keep_old(folder, plan.nodes, job.attempts)
        except Failed as error:
            job.returncode, job.cause = error.code, str(error)
            job.culprit = error.culprit and "{}-{}".format(*error.culprit)
            break
    # What was printed while it was ended.
    for node, line in start.lines:
        show(node, line)
    job.seconds = time.monotonic() - begin
    return job.check() if check else job
