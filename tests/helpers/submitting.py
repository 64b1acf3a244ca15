"""Jobs that mpi, Slurm or Grid Engine starts on a box, and what is left of them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from job_checks import command, wait_for

from pslaunch import submitted

ROOT = Path(__file__).parents[2]
STEPS = [sys.executable, str(ROOT / "tests/helpers/jobs/steps.py")]


class Submitting:
    """`name`: of the launcher. `flags`: what it needs here. `jobs`: called without
    arguments, the names in the queue."""

    def __init__(self, name, cluster, env, flags=(), jobs=list):
        self.name, self.cluster, self.env, self.jobs = name, cluster, env, jobs
        self.flags = list(flags)
        self.before = {*self.processes(), *ROOT.glob(".d2l_ext-*")}

    def processes(self):
        """Of all hosts: daemons too."""
        return [pid for host in (self.cluster.head, *self.cluster.hosts)
                for pid in host.processes()]

    def words(self, *flags):
        return [sys.executable, "-m", "pslaunch", "--launcher", self.name,
                "--deadline", "300", *self.flags, *flags]

    def run(self, *flags):
        """Run a job on the head, to its end."""
        return self.cluster.head.run(self.words(*flags), env=self.env, cwd=ROOT,
                                     timeout=300)

    def popen(self, *flags):
        """Start a launcher on the head."""
        return self.cluster.head.popen(
            self.words(*flags), env=self.env, cwd=ROOT, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def kill(self):
        """Kill the launcher itself, not what entered the head."""
        (pid,) = (pid for pid in self.cluster.head.processes() if command(pid)
                  .startswith(f"{sys.executable} -m pslaunch --l"))
        os.kill(pid, signal.SIGKILL)

    def start(self, workers=2):
        """Start a job that makes steps; return its launcher when all workers do."""
        launcher = self.popen("-n", str(workers), "-s", "1", *STEPS)
        seen, lines = set(), []
        while len(seen) < workers:
            line = launcher.stdout.readline()
            assert line, "".join(lines)
            lines.append(line)
            if "| step 3 " in line:
                seen.add(line.split()[0])
        return launcher

    def left(self):
        """What is left of the job: processes, names in the queue, files."""
        found = [command(pid) for pid in set(self.processes()) - self.before]
        files = set(ROOT.glob(".d2l_ext-*")) - self.before
        return [*filter(None, found), *self.jobs(), *files]

    def check_nothing_left(self):
        wait_for(lambda: not self.left(), 15)


def no_mpi():
    """Why the launcher mpi cannot be tested here; None if it can."""
    found = submitted.implementation()
    return None if found == submitted.OPEN_MPI else (
        f"mpi needs Debian's openmpi-bin; mpirun here: {found}")
