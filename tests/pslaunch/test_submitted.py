"""What launchers that submit a job have in common, with stand-ins for `srun`, Hadoop's
`yarn`: `stand_ins`.

Slurm itself, Grid Engine and Open MPI are tested in `tests/clusters`.
"""

import json
import os
import re
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from job_checks import (  # noqa: F401
    CLI,
    JOBS,
    PYTHON,
    alive,
    nodes_of,
    nothing_left,
    wait_for,
)

import pslaunch as launch
from pslaunch import __main__ as command_line
from pslaunch import plan, submitted

WORDS = [PYTHON, str(JOBS / "words.py")]
STAND_INS = Path(__file__).with_name("stand_ins")
JAR = "share/hadoop/yarn/hadoop-yarn-applications-distributedshell-3.3.6.jar"


@pytest.fixture
def stand_ins(monkeypatch, tmp_path):
    """Stand-ins instead of the tools; the folder in which they leave what they did.

    Hadoop's folder has a jar.
    """
    folder, jar = tmp_path / "stand-in", tmp_path / "hadoop" / JAR
    own = os.path.dirname(PYTHON)
    monkeypatch.setenv("PATH", f"{STAND_INS}:{own}:{os.environ['PATH']}")
    monkeypatch.setenv("T_YARN", str(folder))
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "hadoop"))
    folder.mkdir()
    jar.parent.mkdir(parents=True)
    jar.touch()
    jar.with_name(jar.name.replace("3.3.6", "3.3.6-tests")).touch()
    return folder


def run(command, launcher="slurm", **options):
    """All on this machine, and not on its network."""
    return launch.run(command, launcher=launcher, interface="lo", **options)


def test_copies_become_servers_and_workers_with_all_that_they_were_given(stand_ins):
    nasty = ["a b", "$(touch x)", "'", "ä", "-n", ""]
    job = run([*WORDS, *nasty], env={"T_SECRET": "s p"}, num_servers=2)
    assert job.returncode == 0, job.cause
    for rank in (0, 1):
        told = job.output("worker", rank)
        assert '"T_SECRET": "s p"' in told and f'"DMLC_WORKER_ID": "{rank}"' in told
        assert '"DMLC_NUM_SERVER": "2"' in told and json.loads(told)["argv"] == nasty
    assert "srun: srun: a stand-in" in job.notes


def test_a_door_that_cannot_be_opened_is_the_error(stand_ins, monkeypatch):
    """Such as with an old /etc/hosts: the name of this host is another's address."""
    def door(_):
        raise OSError(99, "Cannot assign requested address")

    monkeypatch.setattr(submitted, "Door", door)
    with pytest.raises(OSError, match="Cannot assign requested address"):
        run(["true"], num_workers=1)


def test_what_ended_well_is_not_cancelled(stand_ins, monkeypatch, tmp_path):
    tool, called = tmp_path / "tools" / "scancel", tmp_path / "called"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\ntouch {called}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    assert run(["true"], num_workers=1).returncode == 0 and not called.exists()


def test_the_secret_does_not_reach_the_processes(stand_ins):
    job = run(["env"], num_workers=1)
    assert job.returncode == 0, job.cause
    assert "SLURM_PROCID=1\n" in job.output() and "D2L_EXT_DOOR" not in job.output()


def test_a_copy_that_comes_twice_has_one_part_in_the_job(stand_ins, monkeypatch):
    """As when a scheduler has lost sight of one, and starts it anew."""
    monkeypatch.setenv("T_COPIES", "0 0 0 1 2")
    job = run(WORDS)
    assert job.returncode == 0, job.cause
    assert [json.loads(job.output("worker", rank))["env"]["DMLC_WORKER_ID"]
            for rank in (0, 1)] == ["0", "1"]


@pytest.mark.parametrize("code, of_job", [(3, 3), (0, 1)])
def test_a_submission_that_ends_before_all_agents_are_there_fails_the_job(
        stand_ins, monkeypatch, code, of_job):
    monkeypatch.setenv("T_COPIES", "")
    monkeypatch.setenv("T_CODE", str(code))
    job = run(WORDS)
    assert job.returncode == of_job
    told = f"srun ended with code {code} when 0 of 3 agents have arrived:\nsrun: a"
    assert told in job.cause


def test_agents_that_wait_for_others_end_with_the_deadline(stand_ins, monkeypatch):
    monkeypatch.setenv("T_COPIES", "0 1")
    monkeypatch.setattr(submitted, "PATIENCE", 0.5)
    job = run(WORDS, deadline=8)
    assert job.returncode == 124
    assert job.seconds < 20
    wait = "2 of 3 agents have arrived; `squeue` shows the state of the others"
    said = [note for note in job.notes if "agents have arrived" in note]
    assert said[-1] == wait and len(set(said)) == len(said)


def test_the_folder_of_an_array_job_goes_after_its_submission(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    team = submitted.Sge(plan.JobPlan(["x"], [], {}), "j", "127.0.0.1", print, None)
    (folder,), seen = map(Path, team.files("j")), []
    assert folder.parent == tmp_path
    monkeypatch.setattr(submitted.Sge, "words", lambda *_: ["sleep", "100"])
    monkeypatch.setattr(submitted.Sge, "cancel",
                        lambda *_: seen.append(folder.exists()))
    team.open()
    assert stat.S_IMODE((folder / "door").stat().st_mode) == 0o600
    team.close()
    assert seen == [True] and not folder.exists()


def test_a_grid_engine_that_does_not_answer_in_time_is_asked_again(monkeypatch):
    team = submitted.Sge(plan.JobPlan(["x"], [], {}), "j", "127.0.0.1", print, None)
    run_as_it_is = subprocess.run
    monkeypatch.setattr(submitted.subprocess, "run", lambda words, **options:
                        run_as_it_is(["sleep", "100"], **{**options, "timeout": 0.1}))
    assert submitted.answer(["qstat"]) == ""
    assert team.ask() is None


@pytest.mark.parametrize("command, code, cause, last", [
    (["sh", "-c", "echo oh; exit 5"], 5, r"worker [01] .*ended with code 5", "oh"),
    (["no-such-command"], 127, "no-such-command: No such file or directory", ""),
])
def test_a_worker_that_fails_or_cannot_begin_gives_the_job_its_code(
        stand_ins, command, code, cause, last):
    job = run(command)
    assert job.returncode == code and re.search(cause, job.cause)
    assert job.last_lines() == last


@pytest.mark.parametrize(
    "name, tool, package",
    [("mpi", "mpirun", ".*Debian"), ("slurm", "srun", ".*Debian"),
     ("sge", "qsub", ".*Debian"),
     ("yarn", "yarn", "Hadoop")],
)
def test_a_missing_tool_is_named(name, tool, package, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ValueError, match=f"no command {tool} here: install {package}"):
        plan.make(["x"], 1, 1, launcher=name)


@pytest.mark.parametrize("flag, value", [
    ("hosts", ["h1"]), ("ssh_config", "f"), ("sync_dst_dir", "/d"),
])
def test_what_only_ssh_can_do_is_refused(flag, value, stand_ins):
    with pytest.raises(ValueError, match=f"{flag} cannot be used with .* slurm"):
        plan.make(["x"], 1, 1, launcher="slurm", **{flag: value})


def test_a_dry_run_shows_the_submission_and_no_value(stand_ins, capsys):
    argv = ["-n", "2", "-s", "1", "--launcher", "slurm", "--submit-args=-p 'a b'",
            "--env", "T_SECRET:x7y", "--dry-run", "train.py", "--lr", "0.1"]
    assert command_line.main(argv) == 0
    out = capsys.readouterr().out
    assert "srun --ntasks=3 " in out and " -p 'a b' " in out
    assert "1 x server, then 2 x worker" in out
    assert "DMLC_ROLE=worker T_SECRET=… train.py --lr 0.1" in out
    assert "x7y" not in out


# ---- yarn ----


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_a_launcher_that_is_ended_ends_what_it_has_submitted(
    signum, stand_ins, nothing_left  # noqa: F811
):
    words = [*CLI, "-n", "1", "-s", "1", "--launcher", "yarn", "--interface", "lo"]
    process = subprocess.Popen([*words, PYTHON, str(JOBS / "steps.py")],
                               stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    wait_for(lambda: ("worker", 0) in nodes_of(nothing_left))
    process.send_signal(signum)
    process.wait(30)
    if signum != signal.SIGINT:  # by which it has ended by itself
        wait_for(lambda: (stand_ins / "killed").exists(), 15)
        assert not (stand_ins / "wrong").exists(), "another's was ended"
    wait_for(lambda: not alive(nothing_left), 15)


def test_the_submission_is_one_of_the_distributed_shell(stand_ins):
    made = plan.make(["x"], 5, 2, launcher="yarn",
                     submit_args=["-queue", "gpu"])
    command = submitted.Yarn.words(made, "JOB")
    assert command[:2] == ["yarn", submitted.CLIENT]
    given = dict(zip(command[2::2], command[3::2]))
    assert given["-jar"].endswith(JAR), "and not that with its tests"
    assert (given["-num_containers"], given["-queue"]) == ("7", "gpu")
    assert (given["-timeout"], given["-appname"]) == ("2147483647", "d2l_ext-JOB")


def test_the_secret_is_in_a_private_script_alone(stand_ins, monkeypatch):
    seen = {}

    def look(self):
        path = Path(self.file(self.job))
        seen.update(mode=path.stat().st_mode, above=path.parent.stat().st_mode,
                    text=path.read_text(), secret=self.door.secret)
        words = Path(f"/proc/{self.process.pid}/cmdline").read_text()
        seen.update(words=words)
        submit_look(self)

    submit_look = submitted.Yarn.look
    monkeypatch.setattr(submitted.Yarn, "look", look)
    job = run(WORDS, "yarn")
    assert job.returncode == 0, job.cause
    assert seen["secret"] in seen["text"] and seen["secret"] not in seen["words"]
    assert stat.S_IMODE(seen["mode"]) == 0o600 and stat.S_IMODE(seen["above"]) == 0o700


def test_hadoop_that_is_elsewhere_is_asked_for(stand_ins, monkeypatch, tmp_path):
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path))
    with pytest.raises(ValueError, match="set HADOOP_HOME to Hadoop"):
        plan.make(["x"], 1, 1, launcher="yarn")
