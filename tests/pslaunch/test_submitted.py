"""What all launchers have in common that submit a job: with a stand-in for `srun`.

Slurm itself, Grid Engine and Open MPI are tested in `tests/cluster`.
"""

import json
import os
import re
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from job_checks import CLI, JOBS, PYTHON, nothing_left  # noqa: F401

import pslaunch as launch
from pslaunch import door, plan, sge, submission, submitted

WORDS = [PYTHON, str(JOBS / "words.py")]
STAND_INS = Path(__file__).with_name("stand_ins")


@pytest.fixture
def srun(monkeypatch):
    """The stand-in instead of Slurm's; all on this machine, not on its network."""
    monkeypatch.setenv("PATH", f"{STAND_INS}:{os.environ['PATH']}")


def run(*words, **options):
    return launch.run([*WORDS, *words], launcher="slurm", interface="lo", **options)


def test_copies_become_servers_and_workers_with_all_that_they_were_given(srun):
    nasty = ["a b", "$(touch x)", "'", "ä", "-n", ""]
    job = run(*nasty, env={"T_SECRET": "s p"}, num_workers=2, num_servers=2)
    assert job.returncode == 0, job.cause
    for rank in (0, 1):
        told = job.output("worker", rank)
        assert '"T_SECRET": "s p"' in told and f'"DMLC_WORKER_ID": "{rank}"' in told
        assert '"DMLC_NUM_SERVER": "2"' in told and json.loads(told)["argv"] == nasty
    assert "srun: srun: a stand-in" in job.notes


def test_the_secret_does_not_reach_the_processes(srun):
    print_names = "import os; print(*os.environ)"
    job = launch.run([PYTHON, "-c", print_names], launcher="slurm", interface="lo")
    assert job.returncode == 0, job.cause
    names = job.output().split()
    assert "SLURM_PROCID" in names and "D2L_EXT_DOOR" not in names


@pytest.fixture
def between(monkeypatch):
    """Somebody through whom all agents dial, and who turns each "well" into "ill!"."""
    server, invitation = socket.create_server(("127.0.0.1", 0)), door.Door.invitation

    def relay(here, there):
        with here, there:
            while text := here.recv(65536):
                there.sendall(text.replace(b"well", b"ill!"))

    def serve(address):
        while True:
            agent, launcher = server.accept()[0], socket.create_connection(address)
            for pair in ((agent, launcher), (launcher, agent)):
                threading.Thread(target=_quietly, args=[relay, *pair],
                                 daemon=True).start()  # fmt: skip

    def redirected(one):
        host, port, secret = invitation.fget(one).split(":")
        threading.Thread(target=_quietly, args=[serve, (host, int(port))],
                         daemon=True).start()  # fmt: skip
        return "{}:{}:{}".format(*server.getsockname(), secret)

    monkeypatch.setattr(door.Door, "invitation", property(redirected))
    with server:
        yield
        server.shutdown(socket.SHUT_RDWR)


def _quietly(function, *args):
    with suppress(OSError):
        function(*args)


@pytest.mark.parametrize("word, code, cause", [
    ("'good'", 0, "None"),
    # The first is changed on the way back, the second with the command.
    ("'we' 'll'", 255, "worker 0 on .* was lost: a message was changed, .*"),
    ("'well'", 255, "worker 0 on .*; agent: a message was changed, .*"),
])  # fmt: skip
def test_a_job_ends_when_somebody_between_changes_a_word_and_says_so(
        srun, between, word, code, cause):  # fmt: skip
    job = launch.run([PYTHON, "-c", f"print({word})"], 1, 1, launcher="slurm",
                     interface="lo")  # fmt: skip
    assert job.returncode == code, job.cause
    assert re.fullmatch(cause, str(job.cause))
    assert "ill!" not in job.output()


def test_a_copy_that_comes_twice_has_one_part_in_the_job(srun, monkeypatch):
    """As when a scheduler has lost sight of one, and starts it anew."""
    monkeypatch.setenv("T_COPIES", "0 0 0 1 2")
    job = run()
    assert job.returncode == 0, job.cause
    assert [json.loads(job.output("worker", rank))["env"]["DMLC_WORKER_ID"]
            for rank in (0, 1)] == ["0", "1"]  # fmt: skip


@pytest.mark.parametrize("code, of_job", [(3, 3), (0, 1)])
def test_a_submission_that_ends_before_all_agents_are_there_fails_the_job(
        srun, monkeypatch, code, of_job):  # fmt: skip
    monkeypatch.setenv("T_COPIES", "")
    monkeypatch.setenv("T_CODE", str(code))
    job = run()
    assert job.returncode == of_job
    told = f"srun ended with code {code}, when 0 of 3 agents are here:\nsrun: a"
    assert told in job.cause


def test_a_name_that_means_this_computer_to_itself_is_no_address_for_others(
        srun, monkeypatch):  # fmt: skip
    """Debian gives a computer's own name to 127.0.1.1."""
    made = plan.make(WORDS, 1, 1, launcher="slurm")
    monkeypatch.setattr(submission, "address", lambda root, interface: "10.0.0.5")
    for own, expected in (("127.0.1.1", "10.0.0.5"), ("10.0.0.7", "10.0.0.7")):
        monkeypatch.setattr(submission.socket, "gethostbyname", lambda name: own)  # noqa: B023
        assert submission.root(made) == expected


def test_agents_that_wait_for_others_end_with_the_deadline(srun, monkeypatch):
    monkeypatch.setenv("T_COPIES", "0 1")
    monkeypatch.setattr(submitted, "PATIENCE", 0.5)
    job = run(deadline=8)
    assert job.returncode == 124
    assert job.seconds < 20
    wait = "2 of 3 agents are here; to see what the others wait for: squeue"
    said = [note for note in job.notes if "agents are here" in note]
    assert said[-1] == wait and len(set(said)) == len(said)


def test_the_folder_of_an_array_job_goes_after_its_submission(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    crew, seen = object.__new__(sge.Crew), []
    crew.job = "j"
    folder = Path(sge.folder("j"))
    folder.mkdir()
    monkeypatch.setattr(submitted.Crew, "close", lambda _: seen.append(folder.exists()))
    crew.close()
    assert seen == [True] and not folder.exists()


def test_a_failing_worker_gives_the_job_its_code(srun):
    job = launch.run([PYTHON, "-c", "import sys; print('oh'); sys.exit(5)"],
                     launcher="slurm", interface="lo")  # fmt: skip
    assert job.returncode == 5
    assert re.fullmatch(r"worker [01] .*ended with code 5.*", job.cause)  # either first
    assert job.last_lines().endswith("oh")


def test_a_command_that_is_not_there_is_said_by_the_agent(srun):
    job = launch.run(["no-such-command"], launcher="slurm", interface="lo")
    assert job.returncode == 127
    assert "no-such-command: No such file or directory" in job.cause


@pytest.mark.parametrize(
    "name, tool", [("mpi", "mpirun"), ("slurm", "srun"), ("sge", "qsub")]
)
def test_a_missing_tool_is_named(name, tool, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ValueError, match=f"no command {tool} here: install .*Debian"):
        plan.make(["x"], 1, 1, launcher=name)


@pytest.mark.parametrize("flag, value", [
    ("hosts", ["h1"]), ("ssh_config", "f"), ("sync_dst_dir", "/d"),
])  # fmt: skip
def test_what_only_ssh_can_do_is_refused(flag, value, srun):
    with pytest.raises(ValueError, match=f"{flag}: not with the launcher slurm"):
        plan.make(["x"], 1, 1, launcher="slurm", **{flag: value})


def test_a_dry_run_shows_the_submission_and_no_value(srun, tmp_path):
    argv = ["-n", "2", "-s", "1", "--launcher", "slurm", "--submit-args=-p 'a b'",
            "--env", "T_SECRET:x7y", "--dry-run", "train.py", "--lr", "0.1"]
    done = subprocess.run([*CLI, *argv], check=True, capture_output=True, text=True)
    assert "srun --ntasks=3 " in done.stdout
    assert " -p 'a b' " in done.stdout
    assert "1 x server, then 2 x worker" in done.stdout
    assert "DMLC_ROLE=worker T_SECRET=… train.py --lr 0.1" in done.stdout
    assert "x7y" not in done.stdout
