"""The launcher `sge`: one array job of Grid Engine, by `qsub -sync y`.

Each task of the array is a server or a worker, and begins when there is a slot for it;
the job begins when all have begun. So two jobs at a time that each got half of the
slots would wait for each other: `--deadline` ends that. `--submit-args` is for qsub's
other flags: `-q gpu.q`, `-l h_vmem=4G`, `-hard`. The scheduler of the job runs beside
the launcher, so the hosts must reach this computer, at the address of its name or of
`--interface`. The way to the launcher is handed over in a file of the working
directory, which hosts share, as `qstat -j` shows variables to everybody.

Tested with Grid Engine 8.1.9 on two hosts.
"""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from . import submitted
from .job import Failed


def folder(job):
    """Where the way to the launcher lies, and what agents say that don't find it."""
    return os.path.join(os.getcwd(), f".{submitted.name(job)}")


class Crew(submitted.Crew):
    """Agents that are tasks of an array job; `qsub` stays while they do."""

    tool, package, queue = "qsub", "Grid Engine (Debian: gridengine-client)", "qstat"
    first, goes_along = 1, "a private file"

    @staticmethod
    def words(plan, job):
        """An agent in each of so many tasks."""
        door = os.path.join(folder(job), "door")
        return ["qsub", "-sync", "y", "-t", f"1-{submitted.copies(plan)}", "-N",
                submitted.name(job), "-wd", os.getcwd(), "-j", "y", "-o",
                os.path.join(folder(job), "said.$TASK_ID"), "-b", "y", "-shell", "n",
                "-r", "n", *plan.settings.submit_args,
                *submitted.agent(plan, "SGE_TASK_ID", door)]  # fmt: skip

    def submit(self):
        os.mkdir(folder(self.job), 0o700)
        path = os.path.join(folder(self.job), "door")
        submitted.write_private(path, self.door.invitation)
        super().submit()
        self.next = time.monotonic() + 3

    def look(self):
        super().look()
        if not (self.placed or self.ending) and time.monotonic() > self.next:
            self.next = time.monotonic() + 3
            self._look_for_errors()

    def _look_for_errors(self):
        """A task that cannot be started stays in the queue, and qsub waits for it."""
        words = ["qstat", "-j", submitted.name(self.job)]
        done = subprocess.run(words, check=False, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=20)  # fmt: skip
        reason = re.search(r"(?m)^error reason +\d+: +(.*)", done.stdout)
        if reason:
            raise Failed(f"Grid Engine cannot start the agents: {reason[1]}", 126)

    def last_words(self):
        files = sorted(Path(folder(self.job)).glob("said.*"))
        texts = [file.read_text(errors="replace") for file in files]
        return super().last_words() + "".join(texts).splitlines()[-6:]

    def close(self):
        super().close()
        shutil.rmtree(folder(self.job), ignore_errors=True)

    @staticmethod
    def cancel(plan, job):
        return ["qdel", submitted.name(job)]

    @staticmethod
    def files(job):
        return [folder(job)]
