"""The launcher `sge`, with Grid Engine's own daemons on two hosts of a box."""

import signal

import pytest
import sge_daemons
from submitting import Submitting

from d2l_ext import box

pytestmark = pytest.mark.skipif(
    bool(sge_daemons.why_not() or box.why_not()),
    reason=str(sge_daemons.why_not() or box.why_not()),
)


@pytest.fixture(scope="module")
def sge():
    with box.Cluster(hosts=2) as cluster, sge_daemons.running(cluster) as env:
        yield Submitting("sge", cluster, env,
                         jobs=lambda: sge_daemons.jobs(cluster, env))  # fmt: skip


def test_a_job_of_two_hosts_ends_with_the_weights_of_this_machine(sge, tmp_path):
    sge.check_trains(tmp_path)


def test_a_killed_worker_ends_the_job_and_its_place_in_the_queue(sge):
    sge.check_killed_worker()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_a_launcher_that_is_ended_leaves_nothing(signum, sge):
    sge.check_ended_launcher(signum)


def test_tasks_without_a_slot_wait_and_end_with_the_deadline(sge):
    done = sge.run("-n", "6", "-s", "6", "--deadline", "4", "true")
    assert done.returncode == 124, done.stderr
    sge.check_nothing_left()


def test_why_agents_cannot_start_is_said(sge):
    done = sge.run("-n", "1", "-s", "1", "--python", "/no/such/python", "true")
    assert done.returncode == 126, done.stderr
    assert "cannot start the agents: " in done.stderr
    assert "/no/such/python" in done.stderr
    sge.check_nothing_left()
