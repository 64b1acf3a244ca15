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

from . import addresses, submission, submitted
from .environment import LOOPBACK
from .mpirun import OPEN_MPI, implementation
from .processes import MARK
from .proof import DOOR

#: Variables by which mpirun knows that it runs in a job of a scheduler's.
ALLOCATIONS = ("SLURM_JOB_ID", "PE_HOSTFILE", "PBS_NODEFILE", "LSB_HOSTS")
TOO_FEW = ("there are not enough slots for so many processes: write a hosts file, or "
           "--submit-args=--oversubscribe")  # fmt: skip


def check(plan):
    """Raise `ValueError` when it can't be done: no mpirun, too few slots, ..."""
    submission.need("mpirun", "Open MPI (Debian: openmpi-bin)")
    found, config = implementation(), plan.where.ssh_config
    if found != OPEN_MPI:
        raise ValueError(
            f"mpirun here is of {found}, whose flags are not Open MPI's: install that "
            "(Debian: openmpi-bin, and where both are there update-alternatives "
            "--config mpirun), or use the launcher ssh")  # fmt: skip
    if config and config.split() != [config]:
        raise ValueError(f"ssh_config={config!r}: mpirun divides ssh's options at each "
                         "space, whatever the quotes: name a link without spaces to it")
    submission.refuse(plan, "mpi", "sync_dst_dir")
    hosts, wanted = plan.where.hosts or [], submission.copies(plan)
    for host in hosts:
        if host.port or host.user:
            raise ValueError(f"{host}: mpirun takes names alone; write port and user "
                             "into the configuration of ssh")  # fmt: skip
    slots = sum(host.slots or wanted for host in hosts)
    if hosts and slots < wanted:
        raise ValueError(f"{wanted} servers and workers, but {slots} slots in the hosts"
                         " file: write more there, or none")  # fmt: skip


def root(plan):
    """The address of the scheduler: 127.0.0.1, if all processes are on this host."""
    if plan.where.hosts:
        return addresses.of_scheduler(plan)
    away = plan.where.interface or any("host" in w for w in plan.where.submit_args)
    if away or any(name in os.environ for name in ALLOCATIONS):
        return submission.root(plan)
    return LOOPBACK


def words(plan, job):
    """What is run: agents, on the hosts in turn."""
    wanted, where = submission.copies(plan), plan.where
    command = ["mpirun", "-n", str(wanted), "--map-by", "node", "--bind-to", "none"]
    if where.hosts:
        each = [f"{host.name}:{host.slots or wanted}" for host in where.hosts]
        command += ["--host", ",".join(each)]
    if where.ssh_config:
        command += ["--mca", "plm_rsh_args", f"-F {where.ssh_config}"]
    command += ["-x", DOOR, "-x", MARK]  # names alone: no value on a command line
    agent = submission.agent(plan, "OMPI_COMM_WORLD_RANK")
    return [*command, *where.submit_args, *agent]


class Crew(submitted.Crew):
    """Agents that `mpirun` starts, which stays while they do."""

    tool, queue, words = "mpirun", "ps -C mpirun,orted", staticmethod(words)

    def last_words(self):
        if any("not enough slots" in line for line in self.said):
            return [TOO_FEW]
        return super().last_words()


def describe(plan):
    """What would be submitted: a list of lines."""
    return submission.describe(plan, words(plan, "JOB"))
