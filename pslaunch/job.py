"""What became of a job: codes, logs, and the process that was to blame."""

from dataclasses import dataclass, field
from pathlib import Path

from d2l_ext.temporary import Folder

#: Exit codes of a job, besides those of its processes.
DEADLINE, NOT_READY, NO_COMMAND = 124, 125, 127


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
        """All that this process printed, standard error included."""
        return self._read(f"{role}-{rank}")

    def _read(self, name):
        if not Path(self.logs[name]).exists():  # the job failed before it was started
            return ""
        return Path(self.logs[name]).read_text(encoding="utf-8", errors="replace")

    def last_lines(self, count=20):
        """The end of the log of the process that failed; empty when none did."""
        if self.culprit not in self.logs:
            return ""
        return "\n".join(self._read(self.culprit).splitlines()[-count:])

    def check(self):
        """Return this job, or raise `LaunchError` when it failed."""
        if self.returncode:
            raise LaunchError(self)
        return self

    def __repr__(self):
        how = "ended well" if not self.returncode else f"failed: {self.cause}"
        return f"<job of {len(self.logs)} processes, {how}>"


class LaunchError(RuntimeError):
    """A job failed. `job` is the `Job`; the message ends with the last lines."""

    def __init__(self, job):
        self.job = job
        lines = job.last_lines()
        super().__init__(job.cause + (f"\n{lines}" if lines else ""))


def log_folder(job, log_dir):
    """The folder for the logs of `job`: `log_dir`, or one that goes when `job` does.

    Raises `OSError` when it cannot be made.
    """
    if log_dir is not None:
        Path(log_dir).mkdir(parents=True, exist_ok=True)
        return Path(log_dir).resolve()
    job.temporary = Folder("d2l_ext-job-")
    return Path(job.temporary.name)
