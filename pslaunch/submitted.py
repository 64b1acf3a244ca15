"""Agents that a scheduler starts: one submission, as many copies of `door.py`.

    mpirun, srun, qsub, ...: one job --- copy 0, 1, 2, ... of door
                                              |  |  |
    launcher ------------ door ---------------+--+--+        then as with ssh

The launchers `mpi`, `slurm`, `sge` and `yarn` are this class with the
words of their command. Copy 0 and those after it become the servers, the others the
workers. What is submitted is the same in every job, but for the number of copies: what
to run, and its variables, go through the channels. The scheduler of the job runs beside
the launcher, so hosts must reach this computer, at the address of its name or of
`--interface`. `--submit-args` is for other flags of the command.
"""

import math
import os
import shlex
import shutil
import subprocess
import time
from contextlib import suppress

from . import crew, processes
from .door import DOOR, Door
from .job import Failed, Tail

#: Seconds until it is said that a job seems to wait; from one question to the next.
PATIENCE, ASK = 20.0, 3.0


class Crew(crew.Crew):
    """Subclasses have `tool`, the command that submits, and `package`, what it is of;
    `queue`, the command that tells how the job is; `words(plan, job)`, what is run to
    submit; perhaps `stays`, whether that command does as long as the job, `first`, the
    number of the first copy, `refused`, flags that cannot be heeded, and `goes_along`,
    where the way to the launcher is handed over.
    """

    tool = package = queue = words = None
    stays, first, goes_along = True, 0, "its environment"
    refused = ("hosts", "ssh_config", "sync_dst_dir")

    @classmethod
    def check(cls, plan):
        if not shutil.which(cls.tool):
            raise ValueError(f"there is no command {cls.tool} here: install "
                             f"{cls.package}, or run this on a computer that submits "
                             "jobs")
        for flag in cls.refused:
            if getattr(plan.settings, flag):
                why = {"hosts": "the scheduler chooses the hosts; --submit-args can "
                       "tell it which"}.get(flag, "only the launcher ssh does that")
                raise ValueError(f"{flag}: not with the launcher "
                                 f"{plan.settings.launcher}: {why}")

    @classmethod
    def describe(cls, plan):
        servers, workers = plan.settings.num_servers, plan.settings.num_workers
        return [
            "here: scheduler-0",
            f"one submission; the way to the launcher goes along in {cls.goes_along}:",
            f"  {shlex.join(cls.words(plan, 'JOB'))}",
            f"its copies: {servers} x server, then {workers} x worker:",
            *(f"  {plan.shown(role)}" for role in ("server", "worker")),
        ]

    @staticmethod
    def file(job):
        """The path of a private file for what goes along, in a folder of its own."""

    @classmethod
    def files(cls, job):
        path = cls.file(job)
        return [os.path.dirname(path)] if path else []

    def hand_over(self):
        """What goes along, if not as a variable: the text of that file; without one,
        of what the command reads."""
        return ""

    def ask(self):
        """Ask the scheduler, now and then, why agents do not come: raise `Failed`."""

    def open(self):
        self.door, self.numbers, self.said = Door(self.root), set(), []
        self.heard = self.asked = time.monotonic()
        path, text = self.file(self.job), self.hand_over()
        if path:
            write_private(path, text)
        self.process = crew.Program(self.words(self.plan, self.job), self.job,
                                    {DOOR: self.door.invitation},
                                    stdin=subprocess.PIPE)
        self.tail = Tail(f"/proc/self/fd/{self.process.file.fileno()}")
        with suppress(BrokenPipeError), self.process.stdin:
            self.process.stdin.write(b"" if path else text.encode())

    def look(self):
        if self.placed or self.over.is_set():
            self.door.close()
            self._listen()
            return
        code = self.process.poll()  # before its last words are read
        self._listen()
        servers = self.plan.settings.num_servers
        for link, number in self.door.admitted():
            number -= self.first
            if number in self.numbers and number >= 0:  # again, for one that was lost
                link.close()
                continue
            self.numbers.add(number)
            self.heard = time.monotonic()
            if number >= 0:  # its scheduler numbers them
                link.role = "server" if number < servers else "worker"
            self.add(link)
        if len(self.channels) < len(self.wanted):
            self._wait_for_more(code)

    def _wait_for_more(self, code):
        here = f"{len(self.channels)} of {len(self.wanted)} agents are here"
        if code or (code == 0 and self.stays):
            text = "\n".join(self.last_words())
            raise Failed(f"{self.tool} ended with code {code}, when {here}"
                         + (text and f":\n{text}"), code if code > 0 else 1)
        now = time.monotonic()
        if now - self.heard > PATIENCE:
            self.heard = math.inf
            self.say(f"{here}; to see what the others wait for: {self.queue}")
        if now - self.asked > ASK:
            self.ask()
            self.asked = time.monotonic()

    def last_words(self):
        """Lines that tell why there is no job."""
        return [*self.said, *self.tail.lines(last=True)][-12:]

    def _listen(self):
        """Say what the command prints, while agents are waited for."""
        for line in filter(None, map(str.rstrip, self.tail.lines())):
            self.said.append(line)
            if not (self.placed or self.over.is_set()):
                self.say(f"{self.tool}: {line}")

    def lost(self, channel):
        """An agent that came was gone again: the submission tells why, if it does."""
        self.process.ends(3)
        self._listen()
        super().lost(channel)

    def reason(self, channel):
        said = "; ".join(self.said[-3:])
        why = channel.forged or "its agent ended"
        return why + (f"; {self.tool} said: {said}" if said else "")

    def close(self):
        """The agents have ended, and so should the job; if not, it is cancelled."""
        self.door.close()
        if not (self.stays and self.placed and self.process.ends(5)):
            words = self.cancel(self.plan, self.job)
            processes.cancel(words)
            if not (words and self.process.ends(5)):
                self.process.terminate()
        self.process.end(5)
        for path in self.files(self.job):
            shutil.rmtree(path, ignore_errors=True)


# ---- What launchers say of a plan, and of a job ----


def name(job):
    """The job's name at the scheduler, by which it can be found and cancelled."""
    return f"d2l_ext-{job}"


def copies(plan):
    """How many agents are submitted: one for each server and worker."""
    return plan.settings.num_servers + plan.settings.num_workers


def agent(plan, variable, *file):
    """The words that start one agent; see `door.py`."""
    return [plan.settings.python, "-m", "pslaunch.door", variable, *file]


def answer(words):
    """What a command answers, on its standard output."""
    return subprocess.run(words, check=False, text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=20).stdout


def write_private(path, text):
    """Write a file that nobody else may read, in a new folder for it."""
    os.mkdir(os.path.dirname(path), 0o700)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(text)
