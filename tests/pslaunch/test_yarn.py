"""The launcher `yarn`, with a stand-in for Hadoop, `stand_ins/yarn`. No real Hadoop."""

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from job_checks import CLI, JOBS, PYTHON, nodes_of, nothing_left, wait_for  # noqa: F401
from trained import TRAIN, local_weights, weights

import pslaunch as launch
from pslaunch import plan, yarn

STAND_INS = Path(__file__).with_name("stand_ins")
JAR = "share/hadoop/yarn/hadoop-yarn-applications-distributedshell-3.3.6.jar"


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The stand-in's folder; yarn is the stand-in, and Hadoop's folder has the jar."""
    monkeypatch.setenv("PATH", f"{STAND_INS}:{os.environ['PATH']}")
    monkeypatch.setenv("T_YARN", str(tmp_path / "yarn"))
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "hadoop"))
    (tmp_path / "yarn").mkdir()
    jar = tmp_path / "hadoop" / JAR
    jar.parent.mkdir(parents=True)
    jar.touch()
    jar.with_name(jar.name.replace("3.3.6", "3.3.6-tests")).touch()
    return tmp_path / "yarn"


def run(command, **options):
    return launch.run(command, launcher="yarn", interface="lo", **options)


def test_a_job_in_containers_ends_with_the_weights_of_this_machine(folder, tmp_path):
    job = run([*TRAIN, "--save-prefix", str(tmp_path / "yarn-net")], num_workers=2)
    assert job.returncode == 0, job.cause
    assert (weights(tmp_path / "yarn-net") == local_weights(tmp_path)).all()
    assert any("Submitted application application_" in note for note in job.notes)


def test_the_submission_is_one_of_the_distributed_shell(folder):
    made = plan.make(["x"], 5, 2, launcher="yarn",
                     submit_args=["-queue", "gpu"])  # fmt: skip
    command = yarn.words(made, "JOB")
    assert command[:2] == ["yarn", yarn.CLIENT]
    given = dict(zip(command[2::2], command[3::2]))
    assert given["-jar"].endswith(JAR), "and not that with its tests"
    assert (given["-num_containers"], given["-queue"]) == ("7", "gpu")
    assert (given["-timeout"], given["-appname"]) == ("2147483647", "d2l_ext-JOB")


def test_the_secret_is_in_a_private_script_alone(folder, monkeypatch):
    seen = {}

    def look(self):
        path = Path(yarn.folder(self.job), "agent.sh")
        seen.update(mode=path.stat().st_mode, above=path.parent.stat().st_mode,
                    text=path.read_text(), secret=self.door.secret)
        words = Path(f"/proc/{self.process.pid}/cmdline").read_text()
        seen.update(words=words)
        submit_look(self)

    submit_look = yarn.Crew.look
    monkeypatch.setattr(yarn.Crew, "look", look)
    job = run([PYTHON, str(JOBS / "words.py")])
    assert job.returncode == 0, job.cause
    assert seen["secret"] in seen["text"] and seen["secret"] not in seen["words"]
    assert stat.S_IMODE(seen["mode"]) == 0o600 and stat.S_IMODE(seen["above"]) == 0o700


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_a_launcher_that_is_ended_kills_the_application(signum, folder, nothing_left):  # noqa: F811
    launcher = subprocess.Popen(
        [*CLI, "-n", "1", "-s", "1", "--launcher", "yarn", "--interface", "lo", PYTHON,
         str(JOBS / "steps.py")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    wait_for(lambda: ("worker", 0) in nodes_of(nothing_left))
    launcher.send_signal(signum)
    launcher.wait(30)
    if signum == signal.SIGKILL:  # else it has ended by itself
        wait_for(lambda: (folder / "killed").exists(), 15)


def test_hadoop_that_is_elsewhere_is_asked_for(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path))
    with pytest.raises(ValueError, match="set HADOOP_HOME to the folder of Hadoop"):
        plan.make(["x"], 1, 1, launcher="yarn")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ValueError, match="no command yarn here: install Hadoop"):
        plan.make(["x"], 1, 1, launcher="yarn")
