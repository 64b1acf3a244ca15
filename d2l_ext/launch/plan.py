"""What is to be started: the request of a job, checked as a whole."""

import os
import sys
from dataclasses import dataclass
from types import ModuleType

from . import environment, local

LAUNCHERS = {"local": local}
#: What runs a server or the scheduler.
NODE = [sys.executable, "-m", "d2l_ext.launch.node"]


@dataclass(frozen=True)
class Plan:
    """`command`: of a worker. `nodes`: every (role, rank). `env`: a dict by role."""

    command: list
    nodes: list
    env: dict
    launcher: ModuleType = local

    def command_of(self, role):
        """What a process of this role runs."""
        return self.command if role == "worker" else NODE


def make(command, num_workers, num_servers, env=None, env_worker=None,
         env_server=None, env_scheduler=None, launcher="local",
         verbose=0):  # fmt: skip
    """Check what `launch.run` was given; return a `Plan`. Raises `ValueError`."""
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
    return Plan(command, nodes, env, LAUNCHERS[launcher])
