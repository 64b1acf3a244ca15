"""Slurm on the hosts of a box: munge everywhere, slurmctld on the head, slurmd on the
others. All of its files are in a folder of the box, or in hosts' own `/run`."""

import os
import shutil
import time
from contextlib import contextmanager

from daemons import starting

NEEDED = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd",
          "srun": "slurm-client"}
PLACES = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
#: Sizes are overridden: a host of the box says that it has all processors.
CONFIGURATION = """\
ClusterName=box
SlurmctldHost=head({head})
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={private}/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
KillWait=3
ReturnToService=2
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_not():
    """None, or why Slurm can't be brought up here."""
    missing = [package for command, package in NEEDED.items()
               if not shutil.which(command, path=PLACES)]
    if missing:
        return f"Slurm needs Debian's {', '.join(missing)}"
    return "Slurm's daemons need root" if os.geteuid() else None


@contextmanager
def running(cluster, slots=3):
    """Slurm on `cluster`, with so many slots on each host; the environment in which
    its commands find it. The daemons end with the hosts."""
    folder = cluster.folder / "slurm"
    for path in (folder, folder / "state"):
        path.mkdir()
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    nodes = [f"NodeName={host.name} NodeAddr={host.address} CPUs={slots} State=UNKNOWN"
             for host in cluster.hosts]
    (folder / "slurm.conf").write_text(CONFIGURATION.format(
        head=cluster.head.address, folder=folder, private=cluster.head.private,
        nodes="\n".join(nodes)))
    env = {**os.environ, "PATH": PLACES, "SLURM_CONF": str(folder / "slurm.conf")}
    with starting(folder, env) as start:
        for host in (cluster.head, *cluster.hosts):
            host.run(["mkdir", "-p", "-m", "755", "/run/munge"], check=True)
            start(host, "munged", "--foreground", "--force", "--num-threads=1",
                  f"--key-file={folder}/munge.key", "--pid-file=/run/munge/pid",
                  "--seed-file=/run/munge/seed", "--log-file=/run/munge/log")
        start(cluster.head, "slurmctld", "-D")
        for host in cluster.hosts:
            start(host, "slurmd", "-D", "-N", host.name)
        _wait_until_idle(cluster, env, folder)
        yield env


def _wait_until_idle(cluster, env, folder):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        told = cluster.head.run(["sinfo", "-h", "-o", "%T %D"], env=env, timeout=300)
        if told.stdout.strip() == f"idle {len(cluster.hosts)}":
            return
        time.sleep(0.1)
    logs = [f"{log.name}: {log.read_text()[-600:]}" for log in folder.glob("*.log")]
    raise AssertionError(f"Slurm is not up: {told.stdout}{told.stderr}\n"
                         + "\n".join(logs))


def jobs(cluster, env):
    """Names of the jobs in the queue."""
    told = cluster.head.run(["squeue", "-h", "-o", "%j"], env=env, timeout=300)
    return told.stdout.split()
