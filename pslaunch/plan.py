"""What is to be started: the request of a job, checked as a whole."""

import os
import sys
from dataclasses import dataclass
from types import ModuleType

from . import environment, kubernetes, local, mpi, sge, slurm, ssh, yarn
from .hosts import read as read_hosts

LAUNCHERS = {"local": local, "ssh": ssh, "mpi": mpi, "slurm": slurm, "sge": sge,
             "yarn": yarn, "kubernetes": kubernetes}  # fmt: skip
#: What runs a server or the scheduler, by this Python or that of another host.
NODE = ["-m", "pslaunch.node"]


@dataclass(frozen=True)
class Where:
    """On which computers a job runs, and how they are reached.

    `hosts`: of the hosts file, a list of `hosts.Host`, or None. `interface`: the
    network interface of all, or None. `sync_dst_dir`: where the working directory is
    copied to on each host, or None: they share it. `ssh_config`: the file that ssh
    reads, or None. `python`: on the hosts. `submit_args`: words for the command that
    submits a job.
    """

    hosts: list = None
    interface: str = None
    sync_dst_dir: str = None
    ssh_config: str = None
    python: str = sys.executable
    submit_args: tuple = ()


@dataclass(frozen=True)
class Plan:
    """`command`: of a worker. `nodes`: every (role, rank). `env`: a dict by role."""

    command: list
    nodes: list
    env: dict
    launcher: ModuleType = local
    where: Where = Where()

    def command_of(self, role, there=False):
        """What a process of this role runs; `there`: None for a host's Python."""
        if role == "worker":
            return self.command
        return [None if there else sys.executable, *NODE]


def make(command, num_workers, num_servers, env=None, env_worker=None,
         env_server=None, env_scheduler=None, launcher=None, verbose=0,
         **where):  # fmt: skip
    """Check what `launch.run` was given; return a `Plan`.

    `launcher`: default 'ssh' with hosts, else 'local'. `where`: see `Where`, but
    `hosts` is the path of a hosts file, or a list of its lines. Raises `ValueError`,
    and `OSError` when the hosts file cannot be read.
    """
    launcher = launcher or ("ssh" if where.get("hosts") else "local")
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
    common = {"PS_VERBOSE": str(verbose)} if verbose else {}
    common.update(environment.check(env))
    roles = {"worker": env_worker, "server": env_server, "scheduler": env_scheduler}
    env = {role: {**common, **environment.check(own)} for role, own in roles.items()}
    nodes = environment.names(num_workers, num_servers)
    plan = Plan(command, nodes, env, LAUNCHERS[launcher], _where(**where))
    plan.launcher.check(plan)
    return plan


def _where(hosts=None, **given):
    given = {name: value for name, value in given.items() if value}
    for name, value in given.items():
        if name != "submit_args" and "\0" in os.fspath(value):
            raise ValueError(f"{name}={value!r} has a null character in it")
    return Where(hosts=read_hosts(hosts) if hosts else None, **given)
