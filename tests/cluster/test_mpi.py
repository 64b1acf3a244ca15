"""The launcher `mpi`, with Open MPI on one host and on three of a box."""

import json
import os
import shutil
import signal

import pytest
from submitting import ROOT, STEPS, Submitting

from d2l_ext import box, launch

MISSING = None if shutil.which("mpirun") else "mpi needs Debian's openmpi-bin"
pytestmark = pytest.mark.skipif(bool(MISSING), reason=str(MISSING))
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
WORDS = [STEPS[0], str(ROOT / "tests/jobs/words.py")]


@pytest.fixture(autouse=True)
def allowed(monkeypatch):
    for name, value in AS_ROOT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def mpi():
    if box.why_not():
        pytest.skip(box.why_not())
    with box.Cluster(hosts=3) as cluster:
        yield Submitting("mpi", cluster, {**os.environ, **AS_ROOT},
                         ["-H", cluster.hosts_file])  # fmt: skip


def test_a_job_of_three_hosts_ends_with_the_weights_of_this_machine(mpi, tmp_path):
    mpi.check_trains(tmp_path)


def test_servers_come_first_then_workers_in_turn_over_the_hosts(mpi):
    done = mpi.run("-n", "2", "-s", "1", *WORDS)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split("|", 1) for line in done.stdout.splitlines())
    where = [json.loads(line)["env"]["DMLC_NODE_HOST"] for line in lines.values()]
    _, second, third = [host.address for host in mpi.cluster.hosts]
    assert sorted(where) == [second, third], "the server is on the first"


def test_a_killed_worker_ends_the_job(mpi):
    mpi.check_killed_worker()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_a_launcher_that_is_ended_leaves_nothing(signum, mpi):
    mpi.check_ended_launcher(signum)


def test_without_hosts_all_is_on_this_machine_and_listens_for_it_alone():
    job = launch.run(WORDS, 2, 1, launcher="mpi", submit_args=["--oversubscribe"])
    assert job.returncode == 0, job.cause
    assert '"DMLC_PS_ROOT_URI": "127.0.0.1", ' in job.output("worker", 1)
    assert '"DMLC_NODE_HOST": "127.0.0.1", ' in job.output("worker", 1)


def test_more_processes_than_slots_are_refused_and_do_not_hang():
    workers = os.cpu_count()
    job = launch.run(WORDS, workers, 1, launcher="mpi", deadline=30)
    assert job.returncode == 1
    assert f"ended with code 1, when 0 of {workers + 1} agents are here" in job.cause
    assert "--submit-args=--oversubscribe" in job.cause
    with pytest.raises(ValueError, match="3 servers and workers, but 2 slots"):
        launch.run(WORDS, 2, 1, launcher="mpi", hosts=["a slots=1", "b slots=1"])


def test_a_port_in_the_hosts_file_is_refused():
    with pytest.raises(ValueError, match="a:2222: mpirun takes names alone"):
        launch.run(WORDS, 2, 1, launcher="mpi", hosts=["a:2222"])
