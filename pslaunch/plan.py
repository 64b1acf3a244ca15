"""What is to be started: the request of a job, checked as a whole."""

import math
import os
import shlex
import sys
from dataclasses import dataclass, replace
from importlib import import_module

from . import environment, local
from .hosts import read as read_hosts

#: Each is a file of its name here, which is loaded when it is asked for.
LAUNCHERS = ("local", "ssh", "mpi", "slurm", "sge", "yarn")
#: What runs a server or the scheduler, by this Python or that of another host.
NODE = ["-m", "pslaunch.node"]


def _crew(launcher):
    """The class of a launcher."""
    if launcher == "local":
        return local.Local
    return import_module(f".{launcher}", __package__).Crew


@dataclass(frozen=True)
class Settings:
    """What a job is to be, besides its command; `runner.run` explains them. In a plan,
    `hosts` is a list of `hosts.Host`."""

    num_workers: int = 2
    num_servers: int = 1
    env: dict = None
    env_worker: dict = None
    env_server: dict = None
    env_scheduler: dict = None
    deadline: float = 900.0
    log_dir: str = None
    stream: bool = False
    attempts: int = 3
    ready_timeout: float = 60.0  # takes less than a second on an idle machine
    launcher: str = None
    verbose: int = 0
    max_restarts: int = 0
    hosts: list = None
    interface: str = None
    sync_dst_dir: str = None
    ssh_config: str = None
    python: str = sys.executable
    submit_args: tuple = ()


@dataclass(frozen=True)
class Plan:
    """`command`: of a worker. `nodes`: every (role, rank). `env`: a dict by role.
    `launcher`: a subclass of `crew.Crew`.
    """

    command: list
    nodes: list
    env: dict
    launcher: type = local.Local
    settings: Settings = Settings()

    def command_of(self, role):
        """What a process of this role runs; None is the Python of its host."""
        return self.command if role == "worker" else [None, *NODE]

    def shown(self, role):
        """One line: what a process of this role runs on a host, without any value."""
        names = [f"DMLC_ROLE={role}", *(f"{name}=…" for name in self.env[role])]
        words = [word or self.settings.python for word in self.command_of(role)]
        return f"{' '.join(names)} {shlex.join(words)}"


def make(command, *counts, **given):
    """Check what `launch.run` was given, `Settings` all but the command: a `Plan`.

    Raises `ValueError`, and `OSError` when the hosts file cannot be read.
    """
    settings = Settings(*counts, **given)
    launcher = settings.launcher or ("ssh" if settings.hosts else "local")
    if isinstance(command, (str, bytes)) or not command:
        raise ValueError(f"command={command!r}: give a list of words, as in ['python', "
                         "'train.py']")
    command = [os.fspath(word) for word in command]
    if any("\0" in word for word in command):
        raise ValueError("a word of the command has a null character in it")
    _check(settings, launcher)
    common = {"PS_VERBOSE": str(settings.verbose)} if settings.verbose else {}
    common.update(environment.check(settings.env))
    roles = ("worker", "server", "scheduler")
    env = {role: {**common, **environment.check(getattr(settings, f"env_{role}"))}
           for role in roles}
    nodes = environment.names(settings.num_workers, settings.num_servers)
    settings = replace(settings, python=settings.python or sys.executable,
                       hosts=read_hosts(settings.hosts) if settings.hosts else None)
    plan = Plan(command, nodes, env, _crew(launcher), settings)
    plan.launcher.check(plan)
    return plan


def _check(settings, launcher):
    least = {"num_workers": 1, "num_servers": 0, "attempts": 1, "max_restarts": 0}
    for name, smallest in least.items():
        number = getattr(settings, name)
        if not isinstance(number, int) or number < smallest:
            raise ValueError(f"{name}={number!r}: give a whole number from {smallest}")
    seconds = {"deadline": settings.deadline or 0,
               "ready_timeout": settings.ready_timeout}
    for name, number in seconds.items():
        if not 0 <= number < math.inf:
            raise ValueError(f"{name}={number!r}: give a number of seconds from 0")
    if launcher not in LAUNCHERS:
        raise ValueError(f"launcher={launcher!r}: there is {', '.join(LAUNCHERS)}")
    if settings.verbose not in (0, 1, 2):
        raise ValueError(f"verbose={settings.verbose!r}: PS_VERBOSE is 0, 1 or 2")
    for name in ("interface", "sync_dst_dir", "ssh_config", "python"):
        value = getattr(settings, name)
        if value and "\0" in os.fspath(value):
            raise ValueError(f"{name}={value!r} has a null character in it")
