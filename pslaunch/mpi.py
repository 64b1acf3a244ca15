"""The launcher `mpi`: `mpirun` of Open MPI starts the servers and workers.

They use no MPI: ps-lite carries their messages, as with all launchers. `mpirun` knows
the hosts, from a hosts file or from the scheduler whose job it runs in, and reaches
them by ssh. Hosts of a file are taken in turn, servers first; `slots=N` limits how many
processes a host gets. As root, `OMPI_ALLOW_RUN_AS_ROOT=1` and
`OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1` must be set: Open MPI wants to be told.

Tested with Open MPI 4.1 on one host and on three. MPICH's `mpirun` has other flags, and
is refused.
"""

import os
import subprocess

from . import hosts, submitted
from .door import DOOR
from .environment import LOOPBACK
from .processes import MARK

OPEN_MPI = "Open MPI"
#: What is in the answer to `mpirun --version`, and whose it is then.
KNOWN = {"(Open MPI)": OPEN_MPI, "Intel(R) MPI": "Intel MPI", "HYDRA": "MPICH"}

#: Variables by which mpirun knows that it runs in a job of a scheduler's.
ALLOCATIONS = ("SLURM_JOB_ID", "PE_HOSTFILE", "PBS_NODEFILE", "LSB_HOSTS")
TOO_FEW = ("there are not enough slots for so many processes: write a hosts file, or "
           "--submit-args=--oversubscribe")


def implementation(mpirun="mpirun"):
    """Whose `mpirun` it is: 'Open MPI', 'MPICH', …; None when there is none."""
    try:
        done = subprocess.run([mpirun, "--version"], check=False, text=True, timeout=30,
                              capture_output=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stdout + done.stderr
    names = [name for mark, name in KNOWN.items() if mark in said]
    return [*names, said.strip().partition("\n")[0] or "unknown origin"][0]


class Crew(submitted.Crew):
    """Agents that `mpirun` starts, on the hosts in turn, and stays while they do."""

    tool, package, queue = "mpirun", "Open MPI (Debian: openmpi-bin)", (
        "ps -C mpirun,orted")
    refused = ("sync_dst_dir",)

    @classmethod
    def check(cls, plan):
        super().check(plan)
        found, config = implementation(), plan.settings.ssh_config
        if found != OPEN_MPI:
            raise ValueError(
                f"mpirun here is of {found}, whose flags are not Open MPI's: install "
                "that (Debian: openmpi-bin, and where both are there "
                "update-alternatives --config mpirun), or use the launcher ssh")
        if config and config.split() != [config]:
            raise ValueError(f"ssh_config={config!r}: mpirun divides ssh's options at "
                             "each space, whatever the quotes: name a link without "
                             "spaces to it")
        given, wanted = plan.settings.hosts or [], submitted.copies(plan)
        for host in given:
            if host.port or host.user:
                raise ValueError(f"{host}: mpirun takes names alone; write port and "
                                 "user into the configuration of ssh")
        slots = sum(host.slots or wanted for host in given)
        if given and slots < wanted:
            raise ValueError(f"{wanted} servers and workers, but {slots} slots in the "
                             "hosts file: write more there, or none")

    @staticmethod
    def scheduler_address(plan):
        """127.0.0.1, if all processes are on this host."""
        settings = plan.settings
        away = (settings.hosts or settings.interface
                or any("host" in word for word in settings.submit_args)
                or any(name in os.environ for name in ALLOCATIONS))
        return hosts.scheduler_address(plan) if away else LOOPBACK

    @staticmethod
    def words(plan, job):
        wanted, settings = submitted.copies(plan), plan.settings
        command = ["mpirun", "-n", str(wanted), "--map-by", "node", "--bind-to", "none"]
        if settings.hosts:
            each = [f"{host.name}:{host.slots or wanted}" for host in settings.hosts]
            command += ["--host", ",".join(each)]
        if settings.ssh_config:
            command += ["--mca", "plm_rsh_args", f"-F {settings.ssh_config}"]
        command += ["-x", DOOR, "-x", MARK]  # names alone: no value on a command line
        agent = submitted.agent(plan, "OMPI_COMM_WORLD_RANK")
        return [*command, *settings.submit_args, *agent]

    def last_words(self):
        if any("not enough slots" in line for line in self.said):
            return [TOO_FEW]
        return super().last_words()
