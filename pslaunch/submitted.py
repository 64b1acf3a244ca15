"""Launchers that submit a job to another program: `mpi`, `slurm`, `sge` and `yarn`.

    mpirun, srun, qsub, ...: one job --- copy 0, 1, 2, ... of an agent
                                              |  |  |
    launcher ------------ door ---------------+--+--+        then as with ssh

Each is a subclass of `Submitted` with the words of its command. The first copies become
the servers, the others the workers. Every submission is the same but for the number of
copies: commands and variables travel through the channels. ps-lite's scheduler runs
beside the launcher, so hosts must be able to reach this host, at the address of its
name or of `--interface`. `--submit-args` passes further flags to the command.
"""

import math
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from . import crew, processes
from .channel import DOOR, Door
from .job import Failed, Tail
from .plan import scheduler_address
from .processes import LOOPBACK, MARK

#: Seconds until the launcher reports that a job waits; between two questions.
PATIENCE, ASK = 20.0, 3.0


class Submitted(crew.Crew):
    """Agents that another program starts. A subclass defines:

    `tool`: the command that submits. `package`: where that comes from. `queue`: the
    command that shows the state of a job. `words(plan, job)`: the submission. `stays`:
    whether the command runs as long as the job. `first`: the number of the first copy.
    `refused`: settings it cannot use. `goes_along`: where the invitation is.
    """

    scheduler_address = staticmethod(scheduler_address)

    tool = package = queue = words = None
    stays, first, goes_along = True, 0, "its environment"
    door = process = None  # until `open`
    refused = ("hosts", "ssh_config", "sync_dst_dir")

    @classmethod
    def check(cls, plan):
        if not shutil.which(cls.tool):
            raise ValueError(f"there is no command {cls.tool} here: install "
                             f"{cls.package}, or run this on a host that submits jobs")
        for flag in cls.refused:
            if getattr(plan.settings, flag):
                why = "only the launcher ssh uses it"
                if flag == "hosts":
                    why = "the scheduler chooses hosts; --submit-args can restrict it"
                raise ValueError(f"{flag} cannot be used with the launcher "
                                 f"{plan.settings.launcher}: {why}")

    @classmethod
    def describe(cls, plan):
        servers, workers = plan.settings.num_servers, plan.settings.num_workers
        return [
            "here: scheduler-0",
            f"one submission, with the launcher's address in {cls.goes_along}:",
            f"  {shlex.join(cls.words(plan, 'JOB'))}",
            f"its copies: {servers} x server, then {workers} x worker:",
            *(f"  {plan.shown(role)}" for role in ("server", "worker")),
        ]

    @staticmethod
    def file(job):
        """Return a private file for the invitation, in a folder of its own: a path."""

    @classmethod
    def files(cls, job):
        path = cls.file(job)
        return [os.path.dirname(path)] if path else []

    def hand_over(self):
        """Return the text of that file, or of the command's standard input."""
        return ""

    def ask(self):
        """Ask the scheduler why agents do not arrive; raise `Failed` if they cannot."""

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
        code = self.process.poll()  # before reading its last lines
        self._listen()
        servers = self.plan.settings.num_servers
        for link, number in self.door.admitted():
            number -= self.first
            if number in self.numbers and number >= 0:  # a replacement
                link.close()
                continue
            self.numbers.add(number)
            self.heard = time.monotonic()
            if number >= 0:  # the scheduler numbers its copies
                link.role = "server" if number < servers else "worker"
            self.add(link)
        if len(self.channels) < len(self.wanted):
            self._wait_for_more(code)

    def _wait_for_more(self, code):
        here = f"{len(self.channels)} of {len(self.wanted)} agents have arrived"
        if code or (code == 0 and self.stays):
            text = "\n".join(self.last_words())
            raise Failed(f"{self.tool} ended with code {code} when {here}"
                         + (text and f":\n{text}"), code if code > 0 else 1)
        now = time.monotonic()
        if now - self.heard > PATIENCE:
            self.heard = math.inf
            self.say(f"{here}; `{self.queue}` shows the state of the others")
        if now - self.asked > ASK:
            self.ask()
            self.asked = time.monotonic()

    def last_words(self):
        """Return the lines that say why there is no job."""
        return [*self.said, *self.tail.lines(last=True)][-12:]

    def _listen(self):
        """Pass on the output of the command, until all agents have arrived."""
        for line in filter(None, map(str.rstrip, self.tail.lines())):
            self.said.append(line)
            if not (self.placed or self.over.is_set()):
                self.say(f"{self.tool}: {line}")

    def lost(self, channel):
        """Handle an agent that ended too early; the submission's output may say why."""
        self.process.ends(3)
        self._listen()
        super().lost(channel)

    def reason(self, channel):
        said = "; ".join(self.said[-3:])
        why = channel.forged or "its agent ended"
        return why + (f"; {self.tool} printed: {said}" if said else "")

    def close(self):
        """Cancel the job, unless it ends by itself once its agents have ended."""
        if self.door:
            self.door.close()
        if self.process:
            self._end_submission()
        for path in self.files(self.job):
            shutil.rmtree(path, ignore_errors=True)

    def _end_submission(self):
        if not (self.stays and self.placed and self.process.ends(5)):
            words = self.cancel(self.plan, self.job)
            processes.cancel(words)
            if not (words and self.process.ends(5)):
                self.process.terminate()
        self.process.end(5)


# ---- Names and words that these launchers share ----


def job_name(job):
    """Return the job's name at the scheduler, for finding and cancelling it."""
    return f"d2l_ext-{job}"


def num_agents(plan):
    """Return the number of agents: one for each server and worker."""
    return plan.settings.num_servers + plan.settings.num_workers


def agent_words(plan, variable, *file):
    """Return the words that start one agent; see `agent.py`."""
    return [plan.settings.python, "-m", "pslaunch.agent", variable, *file]


def answer(words):
    """Return the standard output of a command; '' if it takes more than 20 s."""
    with suppress(subprocess.TimeoutExpired):
        return subprocess.run(words, check=False, text=True, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=20).stdout
    return ""


def write_private(path, text):
    """Write a file that only its owner can read, in a new folder."""
    os.mkdir(os.path.dirname(path), 0o700)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(text)


# ---- mpi, slurm, sge ----

OPEN_MPI = "Open MPI"
#: A part of the output of `mpirun --version`, and the implementation it is from.
IMPLEMENTATIONS = {"(Open MPI)": OPEN_MPI, "Intel(R) MPI": "Intel MPI",
                   "HYDRA": "MPICH"}
#: Variables that tell mpirun that it runs in a scheduler's job.
ALLOCATIONS = ("SLURM_JOB_ID", "PE_HOSTFILE", "PBS_NODEFILE", "LSB_HOSTS")
TOO_FEW = ("there are too few slots for the processes: give a hosts file, or "
           "--submit-args=--oversubscribe")


def implementation(mpirun="mpirun"):
    """Return which `mpirun` this is: 'Open MPI', 'MPICH', …; None without it."""
    try:
        done = subprocess.run([mpirun, "--version"], check=False, text=True, timeout=30,
                              capture_output=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stdout + done.stderr
    names = [name for mark, name in IMPLEMENTATIONS.items() if mark in said]
    return [*names, said.strip().partition("\n")[0] or "unknown origin"][0]


class Mpi(Submitted):
    """Agents that Open MPI's `mpirun` starts, on the hosts in turn; it stays with them.

    They use no MPI: ps-lite carries their messages. `mpirun` knows the hosts from a
    hosts file or from the scheduler in whose job it runs, and reaches them by ssh.
    `slots=N` limits the processes of a host. As root, Open MPI wants
    `OMPI_ALLOW_RUN_AS_ROOT=1` and `OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1`. MPICH's `mpirun`
    has other flags, and is rejected. Tested with Open MPI 4.1 on one host and on three.
    """

    tool, package, queue = "mpirun", "Open MPI (Debian: openmpi-bin)", (
        "ps -C mpirun,orted")
    refused = ("sync_dst_dir",)

    @classmethod
    def check(cls, plan):
        super().check(plan)
        found, config = implementation(), plan.settings.ssh_config
        if found != OPEN_MPI:
            raise ValueError(
                f"mpirun here is {found}, whose flags differ from Open MPI's: install "
                "Open MPI (Debian: openmpi-bin; if both are installed, "
                "update-alternatives --config mpirun), or use the launcher ssh")
        if config and config.split() != [config]:
            raise ValueError(f"ssh_config={config!r}: mpirun splits ssh's options at "
                             "each space, even in quotes: give a link to it without "
                             "spaces")
        given, wanted = plan.settings.hosts or [], num_agents(plan)
        for host in given:
            if host.port or host.user:
                raise ValueError(f"{host}: mpirun accepts only names; write port and "
                                 "user into ssh's configuration")
        slots = sum(host.slots or wanted for host in given)
        if given and slots < wanted:
            raise ValueError(f"{wanted} servers and workers, but {slots} slots in the "
                             "hosts file: give more slots, or leave them out")

    @staticmethod
    def scheduler_address(plan):
        """Return 127.0.0.1 if all processes are on this host."""
        settings = plan.settings
        away = (settings.hosts or settings.interface
                or any("host" in word for word in settings.submit_args)
                or any(name in os.environ for name in ALLOCATIONS))
        return scheduler_address(plan) if away else LOOPBACK

    @staticmethod
    def words(plan, job):
        wanted, settings = num_agents(plan), plan.settings
        command = ["mpirun", "-n", str(wanted), "--map-by", "node", "--bind-to", "none"]
        if settings.hosts:
            each = [f"{host.name}:{host.slots or wanted}" for host in settings.hosts]
            command += ["--host", ",".join(each)]
        if settings.ssh_config:
            command += ["--mca", "plm_rsh_args", f"-F {settings.ssh_config}"]
        command += ["-x", DOOR, "-x", MARK]  # names only: no values on a command line
        start = agent_words(plan, "OMPI_COMM_WORLD_RANK")
        return [*command, *settings.submit_args, *start]

    def last_words(self):
        if any("not enough slots" in line for line in self.said):
            return [TOO_FEW]
        return super().last_words()


class Slurm(Submitted):
    """Agents that are tasks of one `srun`, which stays while they run.

    `srun` waits in the queue; inside an allocation (`salloc`, `sbatch`) it starts a
    step of it. Tasks are numbered over the nodes in turn, servers first. Other flags:
    `-p gpu`, `-N 3`, `--mem-per-cpu=4G`. Tested with Slurm 22.05 on two nodes.
    """

    tool, package, queue = "srun", "Slurm (Debian: slurm-client)", "squeue"

    @staticmethod
    def words(plan, job):
        return ["srun", f"--ntasks={num_agents(plan)}", "--distribution=cyclic",
                f"--job-name={job_name(job)}", "--mpi=none", "--input=none",
                "--export=ALL", "--label", "--wait=0", "--kill-on-bad-exit=0",
                *plan.settings.submit_args, *agent_words(plan, "SLURM_PROCID")]

    @staticmethod
    def cancel(plan, job):
        return ["scancel", f"--name={job_name(job)}"]


class Sge(Submitted):
    """Agents that are tasks of a Grid Engine array job; `qsub -sync y` stays with them.

    A task starts when it gets a slot, and the job when all tasks have started: two jobs
    with half of the slots each would wait for each other until `--deadline`. Other
    flags: `-q gpu.q`, `-l h_vmem=4G`, `-hard`. The invitation is in a file of the
    working directory, which hosts share, because `qstat -j` shows variables to
    everyone. Tested with Grid Engine 8.1.9 on two hosts.
    """

    tool, package, queue = "qsub", "Grid Engine (Debian: gridengine-client)", "qstat"
    first, goes_along = 1, "a private file"

    @staticmethod
    def file(job):
        """Return the same as `Submitted`. Logs of unconnected agents lie beside it."""
        return os.path.join(os.getcwd(), f".{job_name(job)}", "door")

    @classmethod
    def words(cls, plan, job):
        door = cls.file(job)
        return ["qsub", "-sync", "y", "-t", f"1-{num_agents(plan)}", "-N",
                job_name(job), "-wd", os.getcwd(), "-j", "y", "-o",
                f"{door}.$TASK_ID", "-b", "y", "-shell", "n", "-r", "n",
                *plan.settings.submit_args,
                *agent_words(plan, "SGE_TASK_ID", door)]

    def hand_over(self):
        return self.door.invitation

    def ask(self):
        """Raise `Failed` for a task that cannot start: `qsub` would wait forever."""
        said = answer(["qstat", "-j", job_name(self.job)])
        reason = re.search(r"(?m)^error reason +\d+: +(.*)", said)
        if reason:
            raise Failed(f"Grid Engine cannot start the agents: {reason[1]}", 126)

    def last_words(self):
        files = sorted(Path(self.file(self.job)).parent.glob("door.*"))
        texts = [file.read_text(errors="replace") for file in files]
        return super().last_words() + "".join(texts).splitlines()[-6:]

    @staticmethod
    def cancel(plan, job):
        return ["qdel", job_name(job)]


# ---- yarn ----

CLIENT = "org.apache.hadoop.yarn.applications.distributedshell.Client"
JAR = "share/hadoop/yarn/hadoop-yarn-applications-distributedshell-[0-9]*.jar"
#: A script that kills applications by name: `yarn application -kill` needs an id, which
#: only the client knows, and the client may have been killed.
KILL = """yarn application -list </dev/null | tr -d ' ' | while read -r id name _
do [ "$name" = "$0" ] && yarn application -kill "$id" </dev/null; done"""
#: Milliseconds until the client kills the application; by default ten minutes.
CLIENT_TIMEOUT = 2**31 - 1


def jar():
    """Return the distributed shell's path. Raises `ValueError` if it is missing."""
    homes = [os.environ.get("HADOOP_YARN_HOME"), os.environ.get("HADOOP_HOME"),
             Path(shutil.which("yarn")).resolve().parents[1]]
    for home in filter(None, homes):
        for path in sorted(Path(home).glob(JAR)):
            if not path.stem.endswith(("-tests", "-sources", "-javadoc")):
                return str(path)
    raise ValueError(f"there is no {JAR} in {homes[-1]}: set HADOOP_HOME to Hadoop's "
                     "folder")


class Yarn(Submitted):
    """Agents in containers of Hadoop's distributed shell, whose client stays with them.

    The distributed shell comes with Hadoop, and runs a script in a number of
    containers, which must see the working directory at the same path. The invitation is
    in the script, which YARN keeps in the user's folder of HDFS. Other flags: `-queue
    gpu`, `-container_memory 4096`, `-container_vcores 2`.

    Not tested with Hadoop, which Debian lacks: the command follows the documentation
    and source of Hadoop 3 (`distributedshell/Client.java`), and is tested with a
    stand-in for `yarn` that runs the script as processes. How a real cluster rejects a
    job, and how fast it ends containers, is untested.
    """

    tool, package, queue = "yarn", "Hadoop", "yarn application -list"
    goes_along = "the script"

    @classmethod
    def check(cls, plan):
        super().check(plan)
        jar()

    @staticmethod
    def file(job):
        """Return the script."""
        return os.path.join(tempfile.gettempdir(), job_name(job), "agent.sh")

    @classmethod
    def words(cls, plan, job):
        return ["yarn", CLIENT, "-jar", jar(), "-appname", job_name(job),
                "-num_containers", str(num_agents(plan)), "-shell_script",
                cls.file(job), "-timeout", str(CLIENT_TIMEOUT),
                *plan.settings.submit_args]

    def hand_over(self):
        start = shlex.join(agent_words(self.plan, "-"))
        return f"#!/bin/bash\nexport {DOOR}={self.door.invitation}\nexec {start}\n"

    @staticmethod
    def cancel(plan, job):
        return ["sh", "-c", KILL, job_name(job)]
