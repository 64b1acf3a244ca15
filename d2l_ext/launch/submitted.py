"""Agents that a scheduler starts: one submission, as many copies of `dial.py`.

    mpirun, srun, qsub, ...: one job --- copy 0, 1, 2, ... of dial
                                              |  |  |
    launcher ------------ door ---------------+--+--+        then as with ssh

The launchers `mpi`, `slurm`, `sge`, `yarn` and `kubernetes` are this class with the
words of their command. Copy 0 and those after it become the servers, the others the
workers. What is submitted is the same in every job, but for the number of copies: what
to run, and its variables, go through the channels.
"""

import math
import os
import shlex
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from . import channel, crew, watchdog
from .door import Door
from .failures import Failed
from .nearby import Refused, address
from .proof import DOOR

#: What other flags of the launcher mean to ssh alone.
FOR_SSH = ("hosts", "ssh_config", "sync_dst_dir")
#: Seconds until it is said that a job seems to wait.
PATIENCE = 20.0


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
    return [plan.where.python, "-m", "d2l_ext.launch.dial", variable, *file]


class Crew(crew.Crew):
    """Subclasses have `tool`, the command that submits; `queue`, the one that tells how
    the job is; `first`, the number of the first copy; and `words(plan, job)`, what is
    run to submit, and stays while the job does.
    """

    tool = queue = words = None
    first = 0

    def open(self):
        self.door, self.numbers = Door(self.root), set()
        self.said, self.rest, self.asked = [], b"", time.monotonic()
        self.ending = False
        self.submit()

    def submit(self):
        """Run the command that submits the job; `self.process`, and what it prints."""
        env = {**os.environ, DOOR: self.door.invitation, watchdog.MARK: self.job}
        self.process = subprocess.Popen(
            self.words(self.plan, self.job), env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        os.set_blocking(self.process.stdout.fileno(), False)

    def look(self):
        code = self.process.poll()  # before its last words are read
        self._listen()
        if self.placed or self.ending:
            self.door.close()
            return
        for line, number, host in self.door.admitted():
            number -= self.first
            if number in self.numbers:  # a copy of one that was lost: too late
                line.close()
                continue
            self.numbers.add(number)
            fd = line.detach()
            self.add(channel.Channel(fd, fd, host, self.role(number)))
        if len(self.channels) < len(self.wanted):
            self._wait_for_more(code)

    def _wait_for_more(self, code):
        here = f"{len(self.channels)} of {len(self.wanted)} agents are here"
        if code is not None:
            text = "\n".join(self.last_words())
            raise Failed(f"{self.tool} ended with code {code}, when {here}"
                         + (text and f":\n{text}"), code if code > 0 else 1)
        if time.monotonic() - self.asked > PATIENCE:
            self.asked = math.inf
            self.say(f"{here}; to see what the others wait for: {self.queue}")

    def last_words(self):
        """Lines that tell why there is no job."""
        return self.said[-12:]

    def role(self, number):
        """Of a copy; None, if its scheduler does not number them."""
        servers = sum(role == "server" for role, _ in self.wanted)
        return None if number < 0 else "server" if number < servers else "worker"

    def _listen(self):
        """Say what the command prints, while agents are waited for."""
        with suppress(BlockingIOError):
            new = os.read(self.process.stdout.fileno(), 1 << 16)
            *lines, self.rest = (self.rest + new).split(b"\n")
            for line in lines:
                text = line.decode("utf-8", errors="replace").rstrip()
                if text:
                    self.said.append(text)
                    if not (self.placed or self.ending):
                        self.say(f"{self.tool}: {text}")

    def lost(self, channel):
        """An agent that came was gone again: the submission tells why, if it does."""
        if self.ending:
            return
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(3)
        self._listen()
        super().lost(channel)

    def reason(self, channel):
        said = "; ".join(self.said[-3:])
        return "its agent ended" + (f"; {self.tool} said: {said}" if said else "")

    def end(self, grace):
        self.ending = True
        super().end(grace)

    def close(self):
        """The agents have ended, and so should the job; if not, it is cancelled."""
        self.door.close()
        if not (self.placed and self._ends(5)):
            watchdog.cancel(self.cancel(self.job))
            if not (self.cancel(self.job) and self._ends(5)):
                self.process.terminate()
                self._ends(5)
                self.process.kill()
        self.process.stdout.close()
        self.process.wait()

    def _ends(self, seconds):
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.returncode is not None



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
