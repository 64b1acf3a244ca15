"""A ring of processes over ssh: the launcher tells each where all others listen."""

import os
import signal
from pathlib import Path

import pytest
from job_checks import JOBS, PYTHON, nothing_left, wait_for  # noqa: F401
from over_ssh import launch, nodes, nothing_stays, start, words_of  # noqa: F401

from pslaunch import processes

RING = [PYTHON, str(JOBS / "ring.py")]


@pytest.mark.parametrize("card, subnet", [("eth0", "10.77.0."), ("eth1", "10.78.0.")])
def test_workers_on_other_hosts_sum_over_the_network_that_was_chosen(
    cluster, card, subnet
):
    flags = ("--interface", card)
    found = words_of(launch(cluster, *flags, *RING, workers=3))
    assert [found[f"worker-{i}"]["rank"] for i in range(3)] == [0, 1, 2]
    assert sorted(one["host"] for one in found.values()) == ["h1", "h2", "h3"]
    for one in found.values():
        assert one["sums"] == [6.0] and not one["shared"]
        assert one["from"] == [subnet + f"1{one['host'][1]}"] * 2


def test_its_token_is_on_no_command_line_and_a_killed_worker_ends_the_job(cluster):
    with start(cluster, *RING, "on", workers=3) as process:
        wait_for(lambda: len([n for n in nodes(cluster) if n[0] == "worker"]) == 3)
        begun = [process.stdout.readline() for _ in range(3)]
        pids = [pid for host in cluster.hosts for pid in host.processes()
                if (processes.node_of(pid) or " ")[0] == "worker"]
        tokens = {processes.environ(pid)["D2L_EXT_RING"].split()[0] for pid in pids}
        lines = b"".join(p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline"))
        os.kill(pids[0], signal.SIGKILL)
        _, err = process.communicate(timeout=300)
    assert len(begun) == 3 and len(tokens) == 1
    assert len(min(tokens)) == 64 and min(tokens).encode() not in lines
    # Either the launcher was first to see it, or another worker.
    said = {137: "was ended by SIGKILL", 1: "has left the ring"}
    assert said[process.returncode] in err
