"""Ctrl-C on a job on several hosts: which roles run where before, during and after."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from netbox.cluster import Cluster
from pslaunch import processes

from .jobs import IN_FOLDER, environ

#: MXNet's own launcher, with a method of threads that Python 3.9 dropped.
STOCK = """
import runpy, sys, threading
from pathlib import Path
import mxnet
threading.Thread.isAlive = threading.Thread.is_alive
sys.argv[0] = str(Path(mxnet.__file__).parent / "tools" / "launch.py")
runpy.run_path(sys.argv[0], run_name="__main__")
"""
#: A worker that takes steps forever, and leaves a file when it has taken ten.
ENDLESS = """
import d2l_ext, mxnet as mx
kv = mx.kv.create("dist_sync")
kv.init(0, mx.nd.zeros(10))
out, step = mx.nd.zeros(10), 0
while True:
    kv.push(0, mx.nd.ones(10))
    kv.pull(0, out=out)
    out.wait_to_read()
    step += 1
    if step == 10:
        open(f"step-{kv.rank}", "w").close()
"""


def interrupted_under_launch_py():
    """Run `interrupted` under MXNet's own launcher."""
    return interrupted(stock=True)


def interrupted(stock=False, hosts=2, seconds=15):
    """Press Ctrl-C on a job of two workers and a server; return which roles run where.

    `stock`: under MXNet's `launch.py`. Returns a dict with `before`, `during` and
    `after`, each a dict from host to the roles that run there. `after`: when the
    launcher has ended and either nothing is left or `seconds` have passed.
    """
    with Cluster(hosts) as cluster:
        work = cluster.folder / "work"  # which all hosts see
        work.mkdir()
        (work / "worker.py").write_text(ENDLESS)
        # Addresses: with a name in its place, ZeroMQ cannot bind under launch.py.
        lines = [f"{host.address}:{cluster.port}\n" for host in cluster.hosts]
        (work / "hosts").write_text("".join(lines))
        launcher = ["-c", STOCK] if stock else ["-m", "pslaunch"]
        found = {"before": roles(cluster)}
        process = cluster.head.popen(
            ["sh", "-c", IN_FOLDER, str(work), sys.executable, *launcher, "-H", "hosts",
             "--launcher", "ssh", "-n", "2", "-s", "1", sys.executable, "worker.py"],
            env=environ(), start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        _wait(lambda: len(list(work.glob("step-*"))) == 2, 60)
        found["during"] = roles(cluster)
        os.killpg(process.pid, signal.SIGINT)
        _wait(lambda: process.poll() is not None, seconds)
        _wait(lambda: not any(roles(cluster).values()), seconds)
        found["after"] = roles(cluster)
        process.kill()
        process.wait()
        return found


def roles(cluster):
    """Return which roles run on the head and on each host: sorted names, by host."""
    found = {}
    for host in (cluster.head, *cluster.hosts):
        names = [_role(pid) for pid in host.processes()]
        found[host.name] = sorted(name for name in names if name)
    return found


def _role(pid):
    """Return the `DMLC_ROLE` of a Python process; None of others."""
    with suppress(OSError):  # it has ended
        if "python" in Path(f"/proc/{pid}/comm").read_text():
            return processes.environ(pid).get("DMLC_ROLE")


def _wait(condition, seconds):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.1)
