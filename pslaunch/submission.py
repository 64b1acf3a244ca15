"""What the launchers of schedulers say of a plan before it is submitted."""

import os
import shlex
import shutil
import socket
from contextlib import suppress
from pathlib import Path

from .failures import Failed
from .nearby import Refused, address

#: What other flags of the launcher mean to ssh alone.
FOR_SSH = ("hosts", "ssh_config", "sync_dst_dir")


def name(job):
    """The job's name at the scheduler, by which it can be found and cancelled."""
    return f"d2l_ext-{job}"


def copies(plan):
    """How many agents are submitted: one for each server and worker."""
    return sum(role != "scheduler" for role, _ in plan.nodes)


def need(tool, package):
    """Raise `ValueError` unless there is a command `tool`."""
    if not shutil.which(tool):
        raise ValueError(f"there is no command {tool} here: install {package}, or run "
                         "this on a computer that submits jobs")  # fmt: skip


def refuse(plan, launcher, *flags):
    """Raise `ValueError` for flags that this launcher cannot heed."""
    for flag in flags:
        if getattr(plan.where, flag):
            why = {"hosts": "the scheduler chooses the hosts; --submit-args can tell "
                            "it which"}.get(flag, "only the launcher ssh does that")
            raise ValueError(f"{flag}: not with the launcher {launcher}: {why}")


def root(plan):
    """The address where the scheduler of `plan`, and the door, listen, and none else.

    That of the interface, where one is named, else that of this computer's name, else
    the one from which others are reached. Raises `Failed`.
    """
    with suppress(OSError):
        if not plan.where.interface:
            own = socket.gethostbyname(socket.gethostname())
            if not own.startswith("127."):
                return own
    try:
        return address("192.0.2.1", plan.where.interface)  # no host has this address
    except Refused as error:
        raise Failed(f"here: {error}; name an interface that the hosts of the job can "
                     "reach") from None  # fmt: skip


def agent(plan, variable, *file):
    """The words that start one agent; see `dial.py`."""
    return [plan.where.python, "-m", "pslaunch.dial", variable, *file]


def write_private(path, text):
    """Write a file that nobody else may read."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(text)
    return Path(path)


def describe(plan, words, where="its environment"):
    """Lines for `--dry-run`: the submission, and what its copies become."""
    count = [role for role, _ in plan.nodes].count
    return [
        f"one submission; the way to the launcher goes along in {where}:",
        f"  {shlex.join(words)}",
        f"its copies: {count('server')} x server, then {count('worker')} x worker:",
        *(f"  DMLC_ROLE={role} {' '.join(f'{name}=… ' for name in plan.env[role])}"
          f"{_command(plan, role)}" for role in ("server", "worker")),
    ]  # fmt: skip


def _command(plan, role):
    words = plan.command_of(role, there=True)
    return shlex.join(plan.where.python if word is None else word for word in words)
