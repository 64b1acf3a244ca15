"""The launcher `slurm`, with Slurm's own daemons on two hosts of a box."""

import signal

import pytest
import slurm_daemons
from submitting import Submitting

from d2l_ext import box

pytestmark = pytest.mark.skipif(
    bool(slurm_daemons.why_not() or box.why_not()),
    reason=str(slurm_daemons.why_not() or box.why_not()),
)


@pytest.fixture(scope="module")
def slurm():
    with box.Cluster(hosts=2) as cluster, slurm_daemons.running(cluster) as env:
        yield Submitting("slurm", cluster, env, ["--submit-args=-N 2"],
                         lambda: slurm_daemons.jobs(cluster, env))  # fmt: skip


def test_a_job_of_two_hosts_ends_with_the_weights_of_this_machine(slurm, tmp_path):
    slurm.check_trains(tmp_path)


def test_a_killed_worker_ends_the_job_and_its_place_in_the_queue(slurm):
    slurm.check_killed_worker()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_a_launcher_that_is_ended_leaves_nothing(signum, slurm):
    slurm.check_ended_launcher(signum)


def test_a_job_that_waits_in_the_queue_ends_with_its_deadline(slurm):
    done = slurm.run("-n", "6", "-s", "6", "--deadline", "3", "true")
    assert done.returncode == 124, done.stderr
    assert "queued and waiting for resources" in done.stderr
    slurm.check_nothing_left()
