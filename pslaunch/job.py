"""What became of a job: how it failed, its codes, and its logs."""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field

#: Exit codes of a job, besides those of its processes.
DEADLINE, NOT_READY, NO_COMMAND = 124, 125, 127
#: Bytes of a log that are read at a time, and looked through for its last lines.
AT_ONCE = 1 << 20
#: Bytes of a temporary log at which it is begun anew, and of those what is kept.
LONGEST, KEPT = 64 << 20, 16 << 20
#: The code of a process that cannot be reached any more, as of ssh.
LOST = 255


@dataclass(eq=False)
class Job:
    """A job that has ended: nothing of it is running.

    `returncode`: 0 when every process ended well; else the code of the one that
    failed first (128 and the signal's number, when a signal ended it; 147 when one
    had stopped it for 30 s; the watchdog counts too), 124 when the deadline passed,
    125 when the job did not become ready, 127 when there is no such command.
    `cause`: None, or which process failed and how. `attempts`: how often the job was
    started; `restarts`: how often because it failed. `seconds`: from the first start
    to the end. `logs`: the path of the log of `'worker-0'`, `'server-0'`,
    `'scheduler-0'`, … `notes`: lines about starts that were repeated, and what else
    was noticed. `results`: of `call_job`, what the workers returned.
    """

    returncode: int = 0
    cause: str = None
    attempts: int = 0
    restarts: int = 0
    seconds: float = 0.0
    logs: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)
    results: list = None
    culprit: str = None  # whose log tells more, as in 'worker-0'

    def output(self, role="worker", rank=0):
        """All that this process printed, standard error included; of more than 64 MiB
        in a temporary log, the end."""
        return self._read(name_of((role, rank)))

    def _read(self, name, most=None):
        """The text of a log, or the last `most` bytes of each of its files."""
        path, text = self.logs[name], b""
        for part in (earlier(path), path):
            with suppress(FileNotFoundError), open(part, "rb") as file:
                if most:
                    file.seek(max(os.fstat(file.fileno()).st_size - most, 0))
                text += file.read()
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return text.decode("utf-8", errors="replace")

    def last_lines(self, count=20):
        """The end of the log of the process that failed; empty when none did."""
        if self.culprit not in self.logs:
            return ""
        text = self._read(self.culprit, AT_ONCE)
        return "\n".join(text.splitlines()[-count:])

    def check(self):
        """Return this job, or raise `LaunchError` when it failed."""
        if self.returncode:
            raise LaunchError(self)
        return self

    def __repr__(self):
        how = "ended well" if not self.returncode else f"failed: {self.cause}"
        return f"<job of {len(self.logs)} processes, {how}>"


def name_of(node):
    """'worker-0' of a (role, rank)."""
    return "{}-{}".format(*node)


class LaunchError(RuntimeError):
    """A job failed. `job` is the `Job`; the message ends with the last lines."""

    def __init__(self, job):
        self.job = job
        lines = job.last_lines()
        super().__init__(job.cause + (f"\n{lines}" if lines else ""))


# ---- How a start goes wrong ----


class Failed(Exception):
    """The job has failed. `code`: of the whole job, or a `Popen`'s, for which a shell
    would give 128 and the signal's number; `culprit`: (role, rank) or None."""

    def __init__(self, cause, code=1, culprit=None):
        self.code, self.culprit = code if code >= 0 else 128 - code, culprit
        super().__init__(cause)


class NotReady(Failed):
    """The nodes of a start did not find each other: it may be repeated."""

    def __init__(self, cause, culprit=("scheduler", 0)):
        super().__init__(cause, NOT_READY, culprit)


def how(code):
    """In words, how a process ended with `code`, a `Popen`'s."""
    if code >= 0:
        return f"ended with code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


# ---- What its processes print: one file each, read while it grows ----


class Tail:
    """The lines of a growing file, each once. Without the file, none yet."""

    def __init__(self, path):
        self.path, self.place = path, 0

    def lines(self, last=False, most=AT_ONCE):
        """Lines that are complete since the last call; with `last`, what is left too.

        A part of a line that a process has not ended waits for the next call, unless it
        is longer than the `most` bytes that are read at a time.
        """
        complete = []
        with suppress(FileNotFoundError), open(self.path, "rb") as file:
            file.seek(self.place)
            text = file.read(most)
            *complete, rest = text.split(b"\n")
            is_whole = last and len(text) < most
            if rest and (is_whole or not complete and len(text) == most):
                complete, rest = [*complete, rest], b""
            self.place = file.tell() - len(rest)
        return [line.decode("utf-8", errors="replace") for line in complete]

    @property
    def left(self):
        """How many bytes have not been read."""
        with suppress(FileNotFoundError):
            return max(os.stat(self.path).st_size - self.place, 0)
        return 0

    def skip(self):
        """Go on at the first line within the last `AT_ONCE` bytes."""
        if self.left > AT_ONCE:
            self.place += self.left - AT_ONCE
            with open(self.path, "rb") as file:
                file.seek(self.place)
                self.place += file.read(AT_ONCE).find(b"\n") + 1


def shorten(path):
    """Begin a log anew that has become longer than `LONGEST`. Its end is kept, in a
    file beside it; what is printed meanwhile is lost. Whether it was so."""
    with suppress(FileNotFoundError):
        if os.stat(path).st_size > LONGEST:
            with open(path, "r+b") as file:
                file.seek(-KEPT, os.SEEK_END)
                _, _, kept = file.read(KEPT).partition(b"\n")
                earlier(path).write_bytes(kept)
                file.truncate(0)  # its process appends
            return True
    return False


def earlier(path):
    """Where the end of a log is that was begun anew."""
    return path.with_name(f"{path.name}.earlier")


class Process:
    """A process of a start.

    `pid`: None until it has begun. `returncode`: as a `Popen`'s, None while it runs.
    `why`: it is lost. `listening`: it has begun to, on its port. `halted`: the id of
    the process that a signal has stopped, this one or one that it has started; else
    None. `patience`: the seconds for which that has been so.
    """

    pid = returncode = why = halted = None
    listening = False
    patience = 0.0

    def set(self, code, why=None):
        """It has ended, with `code`, or is lost, `why`."""
        if self.returncode is None:
            self.returncode, self.why, self.halted = code, why, None
