"""The launchers `mpi`, `slurm` and `sge`, on hosts of a box: what each must do, with
Open MPI and with the schedulers' own daemons, and what is one launcher's alone."""

import json
import os
import signal
from contextlib import ExitStack, contextmanager

import pytest
import sge_daemons
import slurm_daemons
from job_checks import command, wait_for
from submitting import ROOT, STEPS, Submitting, no_mpi
from trained import TRAIN, local_weights, weights

import netbox as box
import pslaunch as launch
from pslaunch import processes

WORDS = [STEPS[0], str(ROOT / "tests/helpers/jobs/words.py")]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
NO_MPI = no_mpi()


@contextmanager
def mpi():
    with box.Cluster(hosts=3) as cluster:
        flags = ["-H", cluster.hosts_file]
        yield Submitting("mpi", cluster, {**os.environ, **AS_ROOT}, flags)


@contextmanager
def slurm():
    with box.Cluster(hosts=2) as cluster, slurm_daemons.running(cluster) as env:
        yield Submitting("slurm", cluster, env, ["--submit-args=-N 2"],
                         lambda: slurm_daemons.jobs(cluster, env))


@contextmanager
def sge():
    with box.Cluster(hosts=2) as cluster, sge_daemons.running(cluster) as env:
        yield Submitting("sge", cluster, env,
                         jobs=lambda: sge_daemons.jobs(cluster, env))


MISSING = {mpi: lambda: NO_MPI, slurm: slurm_daemons.why_not,
           sge: sge_daemons.why_not}


@pytest.fixture(scope="module")
def up(why_no_box):
    """Called with a launcher: brings it up, once for all tests; or skips."""
    made = {}
    with ExitStack() as stack:

        def bring_up(launcher):
            missing = MISSING[launcher]() or why_no_box
            if missing:
                pytest.skip(missing)
            if launcher not in made:
                made[launcher] = stack.enter_context(launcher())
            return made[launcher]

        yield bring_up


# ---- What each must do ----

each = pytest.mark.parametrize("launcher", [mpi, slurm, sge])


@each
def test_a_job_of_several_hosts_ends_with_the_weights_of_this_machine(
    up, launcher, tmp_path
):
    job, prefix = up(launcher), tmp_path / "net"
    done = job.run("-n", "2", "-s", "1", "--json", *TRAIN, "--save-prefix", str(prefix))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (weights(prefix) == local_weights(tmp_path)).all()
    first, second = json.loads(done.stdout.splitlines()[-1])["workers"]
    assert (first["rank"], second["rank"], first["num_workers"]) == (0, 1, 2)
    job.check_nothing_left()


@each
def test_a_killed_worker_ends_the_job_and_its_place_in_the_queue(up, launcher):
    job = up(launcher)
    process = job.start()
    (victim,) = (pid for pid in set(job.processes()) - job.before
                 if "steps.py" in command(pid)
                 and processes.node_of(pid) == ("worker", 1))
    os.kill(victim, signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL, out
    assert "worker 1" in out and "was ended by SIGKILL" in out
    job.check_nothing_left()


@each
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_a_launcher_that_is_ended_leaves_nothing(up, launcher, signum):
    job = up(launcher)
    process = job.start(workers=1)
    # The secret of a door is 64 hex digits.
    pids = job.processes()
    doors = [processes.environ(pid).get("D2L_EXT_DOOR") for pid in pids]
    secrets = [door.rpartition(":")[2] for door in filter(None, doors)]
    assert not [pid for pid in pids if any(s in command(pid) for s in secrets)]
    if signum == signal.SIGKILL:
        job.kill()
    else:
        process.send_signal(signum)
    out, _ = process.communicate(timeout=60)
    assert process.returncode != 0, out
    job.check_nothing_left()


# ---- mpi alone ----


@pytest.fixture
def here(monkeypatch):
    """Open MPI on this machine."""
    if NO_MPI:
        pytest.skip(NO_MPI)
    for name, value in AS_ROOT.items():
        monkeypatch.setenv(name, value)


def test_servers_come_first_then_workers_in_turn_over_the_hosts(up):
    job = up(mpi)
    done = job.run("-n", "2", "-s", "1", *WORDS)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split("|", 1) for line in done.stdout.splitlines())
    where = [json.loads(line)["env"]["DMLC_NODE_HOST"] for line in lines.values()]
    _, second, third = [host.address for host in job.cluster.hosts]
    assert sorted(where) == [second, third], "the server is on the first"


def test_without_hosts_all_is_on_this_machine_and_listens_for_it_alone(here):
    job = launch.run(WORDS, 2, 1, launcher="mpi", submit_args=["--oversubscribe"])
    assert job.returncode == 0, job.cause
    assert '"DMLC_PS_ROOT_URI": "127.0.0.1", ' in job.output("worker", 1)
    assert '"DMLC_NODE_HOST": "127.0.0.1", ' in job.output("worker", 1)


def test_more_processes_than_slots_are_refused_and_do_not_hang(here):
    workers = os.cpu_count()
    job = launch.run(WORDS, workers, 1, launcher="mpi", deadline=30)
    assert job.returncode == 1
    assert f"ended with code 1 when 0 of {workers + 1} agents have arrived" in job.cause
    assert "--submit-args=--oversubscribe" in job.cause
    with pytest.raises(ValueError, match="3 servers and workers, but 2 slots"):
        launch.run(WORDS, 2, 1, launcher="mpi", hosts=["a slots=1", "b slots=1"])


def test_a_port_in_the_hosts_file_is_refused(here):
    with pytest.raises(ValueError, match="a:2222: mpirun accepts only names"):
        launch.run(WORDS, 2, 1, launcher="mpi", hosts=["a:2222"])


# ---- A queue ----


@pytest.mark.parametrize(
    "launcher, said", [(slurm, "queued and waiting for resources"), (sge, "")]
)
def test_a_job_that_waits_in_the_queue_ends_with_its_deadline(up, launcher, said):
    job = up(launcher)
    done = job.run("-n", "6", "-s", "6", "--deadline", "3", "true")
    assert done.returncode == 124, done.stderr
    assert said in done.stderr
    job.check_nothing_left()


@pytest.mark.parametrize("launcher", [slurm, sge])
def test_a_job_leaves_the_queue_when_its_launcher_is_killed(up, launcher):
    job = up(launcher)
    with job.popen("-n", "6", "-s", "6", "true") as process:
        wait_for(job.jobs)
        job.kill()
        process.communicate(timeout=20)
    job.check_nothing_left()


def test_why_agents_of_grid_engine_cannot_start_is_said(up):
    job = up(sge)
    done = job.run("-n", "1", "-s", "1", "--python", "/no/such/python", "true")
    assert done.returncode == 126, done.stderr
    assert "cannot start the agents: " in done.stderr
    assert "/no/such/python" in done.stderr
    job.check_nothing_left()
