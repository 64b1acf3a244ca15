"""The outcome of a job: exit codes, errors, and the logs of its processes."""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field

#: Exit codes of a job that come from the launcher, not from a process.
DEADLINE, NOT_READY, NO_COMMAND = 124, 125, 127
#: Bytes of a log that are read at a time, or searched for its last lines.
AT_ONCE = 1 << 20
#: Lines that are shown at a time: all in `AT_ONCE`, if short, can take seconds.
LINES = 10_000
#: Bytes at which a temporary log is truncated, and about how many are then kept.
LONGEST, KEPT = 64 << 20, 16 << 20
#: The code of a process that can no longer be reached, as ssh has it.
LOST = 255


@dataclass(eq=False)
class Job:
    """A job that has ended; none of its processes is running.

    `returncode`: 0 if every process succeeded; else the code of the process that failed
    first (128 plus the number of a signal that ended it; 147 if it was stopped for
    30 s; the watchdog counts, too), 124 if the deadline passed, 125 if the job did not
    become ready, 126 if the command cannot be run, 127 if it does not exist, 255 if a
    host cannot be reached. It is 1 if every process succeeded, but the disk of the
    logs is full. `cause`: None, or what failed and how. `attempts`: the number of
    starts; `restarts`: the number of restarts after a failure. `seconds`: from the
    first start to the end. `logs`: a dict from `'worker-0'`, `'server-0'`,
    `'scheduler-0'`, … to paths. `notes`: the launcher's own lines, about repeated
    starts and other events. `results`: with `call_job`, the values that the workers
    returned.
    """

    returncode: int = 0
    cause: str = None
    attempts: int = 0
    restarts: int = 0
    seconds: float = 0.0
    logs: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)
    results: list = None
    culprit: str = None  # the process whose log tells more, as in 'worker-0'

    def output(self, role="worker", rank=0):
        """Return the output of a process, with standard error; of a temporary log over
        64 MiB, only the end.
        """
        return self._read(name_of((role, rank)))

    def _read(self, name, most=None):
        """Return the text of a log, or the last `most` bytes of each of its files."""
        path, text = self.logs[name], b""
        for part in (earlier(path), path):
            with suppress(FileNotFoundError), open(part, "rb") as file:
                if most:
                    file.seek(max(os.fstat(file.fileno()).st_size - most, 0))
                text += file.read()
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return text.decode("utf-8", errors="replace")

    def last_lines(self, count=20):
        """Return the end of the log of the process that failed; empty if none did."""
        if self.culprit not in self.logs:
            return ""
        lines = self._read(self.culprit, AT_ONCE).splitlines()
        return "\n".join(lines[max(len(lines) - count, 0) :])

    def check(self):
        """Return this job, or raise `LaunchError` if it failed."""
        if self.returncode:
            raise LaunchError(self)
        return self

    def __repr__(self):
        how = "ended well" if not self.returncode else f"failed: {self.cause}"
        return f"<job of {len(self.logs)} processes, {how}>"


def name_of(node):
    """Return 'worker-0' for a (role, rank)."""
    return "{}-{}".format(*node)


class LaunchError(RuntimeError):
    """A job failed. `job`: the `Job`. The message ends with the last lines of a log."""

    def __init__(self, job):
        self.job = job
        lines = job.last_lines()
        super().__init__(job.cause + (f"\n{lines}" if lines else ""))


# ---- Failures of a start ----


class Failed(Exception):
    """The job has failed. `code`: an exit code, or minus the number of a signal, which
    becomes 128 plus that number; `culprit`: (role, rank) or None."""

    def __init__(self, cause, code=1, culprit=None):
        self.code, self.culprit = code if code >= 0 else 128 - code, culprit
        super().__init__(cause)


class NotReady(Failed):
    """The nodes of a start did not find each other; the start may be repeated."""

    def __init__(self, cause, culprit=("scheduler", 0)):
        super().__init__(cause, NOT_READY, culprit)


def how(code):
    """Return how a process ended, in words. `code`: a `Popen.returncode`."""
    if code >= 0:
        return f"ended with code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


# ---- The logs of its processes, read while they grow ----


class Tail:
    """The lines of a growing file, each once; none while the file does not exist."""

    def __init__(self, path):
        self.path, self.place = path, 0

    def lines(self, last=False, most=AT_ONCE, count=-1):
        """Return the lines completed since the last call, at most `count` (default:
        all); with `last`, also an incomplete one.

        An incomplete line waits for the next call, unless it is longer than the `most`
        bytes that are read at a time.
        """
        complete = []
        with suppress(FileNotFoundError), open(self.path, "rb") as file:
            file.seek(self.place)
            text = file.read(most)
            *complete, rest = text.split(b"\n", count)
            is_whole = last and len(text) < most and b"\n" not in rest
            if rest and (is_whole or not complete and len(text) == most):
                complete, rest = [*complete, rest], b""
            self.place = file.tell() - len(rest)
        return [line.decode("utf-8", errors="replace") for line in complete]

    @property
    def left(self):
        """The number of unread bytes."""
        with suppress(FileNotFoundError):
            return max(os.stat(self.path).st_size - self.place, 0)
        return 0

    def skip(self):
        """Skip to the first line within the last `AT_ONCE` bytes."""
        if self.left > AT_ONCE:
            self.place += self.left - AT_ONCE
            with open(self.path, "rb") as file:
                file.seek(self.place)
                self.place += file.read(AT_ONCE).find(b"\n") + 1


def shorten(path):
    """Truncate a log that is longer than `LONGEST`; return whether it was.

    The end of the log is kept in a file beside it, with what arrives while that is
    written: a process on a busy machine may print its last lines then. Only output that
    arrives between two calls, the second read and the truncation, is lost.
    """
    with suppress(FileNotFoundError):
        if os.stat(path).st_size > LONGEST:
            with open(path, "r+b") as file:
                file.seek(-KEPT, os.SEEK_END)
                tail = file.read(KEPT)
                kept = tail.partition(b"\n")[2] or tail  # from a whole line on
                with earlier(path).open("wb") as end:
                    end.write(kept)
                    meanwhile = file.read(os.stat(path).st_size - file.tell())
                    file.truncate(0)  # whoever writes it appends
                    end.write(meanwhile)
            return True
    return False


def earlier(path):
    """Return the path that holds the end of a truncated log."""
    return path.with_name(f"{path.name}.earlier")


class Process:
    """A process of a start.

    `pid`: None until it has started. `returncode`: as of `Popen`, None while it runs.
    `why`: the reason if it is lost. `listening`: whether it listens on its port.
    `halted`: the id of a stopped process, this one or a descendant; else None.
    `patience`: the seconds for which it has been stopped.
    """

    pid = returncode = why = halted = None
    listening = False
    patience = 0.0

    def set(self, code, why=None):
        """Record that it has ended with `code`, or is lost for the reason `why`."""
        if self.returncode is None:
            self.returncode, self.why, self.halted = code, why, None
