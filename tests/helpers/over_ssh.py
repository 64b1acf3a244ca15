"""What the tests of jobs over ssh share: a launcher on the head, and who is left."""

import json
import os
import subprocess
import sys

import pytest
from job_checks import JOBS, wait_for
from job_checks import command as command_line

from pslaunch import processes

PYTHON = sys.executable
WORDS = [PYTHON, str(JOBS / "words.py")]


def command(cluster, *argv, hosts=None, workers=2, servers=1):
    """The command line of a launcher, for `Host.run`."""
    counts = ["-n", str(workers), "-s", str(servers), "--deadline", "300"]
    hosts = ["-H", str(hosts or cluster.hosts_file)]
    return [PYTHON, "-m", "pslaunch", *counts, *hosts, *map(str, argv)]


def launch(cluster, *argv, cwd=None, **options):
    """Run a launcher on the head to its end; what became of it."""
    words = command(cluster, *argv, **options)
    return cluster.head.run(words, timeout=320, cwd=cwd)


def words_of(done):
    """What each `words.py` of a job printed, by the name of its process."""
    lines = [line.split(" | ", 1) for line in done.stdout.splitlines()]
    return {name.strip(): json.loads(text) for name, text in lines if text[:1] == "{"}


def nodes(cluster):
    """(role, host name) of every running node of a job, on the head too, sorted."""
    found = [(processes.node_of(pid), host.name)
             for host in (cluster.head, *cluster.hosts) for pid in host.processes()]
    return sorted((node[0], name) for node, name in found if node)


def left(cluster):
    """Command lines of what runs on any host, but for sshd's own processes.

    An sshd whose connection was lost waits for a client that will not come back; how
    long is a setting of the host's.
    """
    found = [(host.name, command_line(pid)) for host in (cluster.head, *cluster.hosts)
             for pid in host.processes()]
    return [(name, line) for name, line in found
            if not line.startswith("sshd:")]


@pytest.fixture(autouse=True)
def nothing_stays(cluster, nothing_left):
    """After a test nothing of it runs on any host."""
    yield
    wait_for(lambda: not left(cluster), 5)


def start(cluster, *argv, **options):
    """A launcher on the head that runs on: its `Popen`, in a group of its own."""
    return cluster.head.popen(
        command(cluster, *argv, **options), stdout=subprocess.PIPE, text=True,
        stderr=subprocess.PIPE, start_new_session=True, env=dict(os.environ),
    )
