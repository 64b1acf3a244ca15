"""The launcher `sge`: one array job of Grid Engine, by `qsub -sync y`.

Each task of the array is a server or a worker, and begins when there is a slot for it;
the job begins when all have begun. So two jobs at a time that each got half of the
slots would wait for each other: `--deadline` ends that. Other flags: `-q gpu.q`,
`-l h_vmem=4G`, `-hard`. The way to the launcher is handed over in a file of the working
directory, which hosts share, as `qstat -j` shows variables to everybody.

Tested with Grid Engine 8.1.9 on two hosts.
"""

import os
import re
from pathlib import Path

from . import submitted
from .job import Failed


class Crew(submitted.Crew):
    """Agents that are tasks of an array job; `qsub` stays while they do."""

    tool, package, queue = "qsub", "Grid Engine (Debian: gridengine-client)", "qstat"
    first, goes_along = 1, "a private file"

    @staticmethod
    def file(job):
        """Beside it lies what agents say that don't find the way to the launcher."""
        return os.path.join(os.getcwd(), f".{submitted.name(job)}", "door")

    @classmethod
    def words(cls, plan, job):
        """An agent in each of so many tasks."""
        door = cls.file(job)
        return ["qsub", "-sync", "y", "-t", f"1-{submitted.copies(plan)}", "-N",
                submitted.name(job), "-wd", os.getcwd(), "-j", "y", "-o",
                f"{door}.$TASK_ID", "-b", "y", "-shell", "n", "-r", "n",
                *plan.settings.submit_args,
                *submitted.agent(plan, "SGE_TASK_ID", door)]

    def hand_over(self):
        return self.door.invitation

    def ask(self):
        """A task that cannot be started stays in the queue, and qsub waits for it."""
        said = submitted.answer(["qstat", "-j", submitted.name(self.job)])
        reason = re.search(r"(?m)^error reason +\d+: +(.*)", said)
        if reason:
            raise Failed(f"Grid Engine cannot start the agents: {reason[1]}", 126)

    def last_words(self):
        files = sorted(Path(self.file(self.job)).parent.glob("door.*"))
        texts = [file.read_text(errors="replace") for file in files]
        return super().last_words() + "".join(texts).splitlines()[-6:]

    @staticmethod
    def cancel(plan, job):
        return ["qdel", submitted.name(job)]
