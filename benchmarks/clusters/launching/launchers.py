"""The same small job under each launcher that has something to run it.

For the chapter *Launching jobs*: `make result NAME=launchers`.
"""

import os
import sys
from contextlib import contextmanager

# What starts a small Slurm or Grid Engine stands with the tests of the launcher.
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../tests/helpers"))
import sge_daemons
import slurm_daemons
from submitting import Submitting, no_mpi

import netbox as box

#: Where am I, and do we add up? The second host may see nothing of the launcher's.
HELLO = """
import socket
import d2l_ext, mxnet as mx
kv = mx.kv.create("dist_sync")
kv.init(0, mx.nd.zeros(2))
kv.push(0, mx.nd.ones(2) * 10**kv.rank)
total = mx.nd.zeros(2)
kv.pull(0, out=total)
print(f"rank {kv.rank} on {socket.gethostname()} pulls {int(total.asnumpy()[0])}")
"""


def table():
    """Run one job under each of ssh, mpi, slurm and sge, two workers and a server on
    two hosts; return a row for each. A launcher that is not installed has a reason
    instead of a result.
    """
    return [_row("ssh", _nothing), _row("mpi", _as_root, no_mpi),
            _row("slurm", slurm_daemons.running, slurm_daemons.why_not),
            _row("sge", sge_daemons.running, sge_daemons.why_not)]


def _row(name, running, why_not=lambda: None):
    missing = why_not()
    if missing:
        return {"launcher": name, "missing": missing}
    with box.Cluster(hosts=2) as cluster, running(cluster) as env:
        flags = ["-H", cluster.hosts_file] if name in ("ssh", "mpi") else []
        flags += ["--submit-args=-N 2"] if name == "slurm" else []
        job = Submitting(name, cluster, env, flags)
        done = job.run("-n", "2", "-s", "1", sys.executable, "-c", HELLO)
        lines = [line.partition("| ")[2] for line in done.stdout.splitlines()]
        return {"launcher": name, "returncode": done.returncode,
                "lines": sorted(line for line in lines if line.startswith("rank")),
                "left": len(job.left())}


@contextmanager
def _nothing(cluster):
    yield dict(os.environ)


@contextmanager
def _as_root(cluster):
    yield {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
