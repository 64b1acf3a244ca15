"""What jobs on several machines need: ssh, MPI, schedulers, a cluster in a box."""

import shutil

from pslaunch.mpirun import OPEN_MPI, implementation

from .finding import NOTE, Finding

#: The command that a job is submitted by, for each scheduler.
SCHEDULERS = {
    "Slurm": "srun",
    "Grid Engine": "qsub",
    "YARN": "yarn",
    "Kubernetes": "kubectl",
}
SERVERS = "/usr/sbin:/usr/local/sbin"  # where sshd is, often outside of the PATH


def examine(which=shutil.which, why_no_box=None):
    """Return the findings. `why_no_box()` is None, or why a box cannot be had."""
    client, server = which("ssh"), which("sshd") or which("sshd", path=SERVERS)
    parts = [n for n, path in (("client", client), ("server", server)) if path]
    schedulers = [name for name, command in SCHEDULERS.items() if which(command)]
    return [
        _tool("ssh", " and ".join(parts), "sudo apt-get install openssh-client"),
        _mpi(which("mpirun")),
        _tool("schedulers", ", ".join(schedulers), ""),
        _box((why_no_box or _why_no_box)()),
    ]


def _tool(topic, there, advice):
    if there:
        return Finding(topic, there)
    return Finding(topic, "none here: stored results are shown", NOTE, advice)


def _mpi(mpirun):
    found, advice = mpirun and implementation(mpirun), (
        "sudo apt-get install openmpi-bin")  # fmt: skip
    if found in (None, OPEN_MPI):
        return _tool("MPI", found and f"mpirun of {found}", advice)
    return Finding("MPI", f"mpirun of {found}, which the launcher mpi refuses: it is "
                   "for Open MPI", NOTE, advice)  # fmt: skip


def _why_no_box():
    import netbox as box

    return box.why_not()


def _box(reason):
    if reason is None:
        return Finding("cluster in a box", "can be had here")
    return Finding("cluster in a box", f"stored results are shown: {reason}", NOTE)
