"""Whose `mpirun` it is; what it does with jobs is tested in `tests/cluster`."""

from pathlib import Path

import pytest

from bookkit.doctor import cluster
from pslaunch import plan, submitted
from pslaunch.ssh import explain

#: The beginning of what each prints as its version.
OPEN_MPI = "mpirun (Open MPI) 4.1.4"
MPICH = "HYDRA build details:\n    Version:      4.0.2"
INTEL = "Intel(R) MPI Library for Linux* OS, Version 2021.12 (HYDRA)"


@pytest.fixture
def say(monkeypatch, tmp_path):
    """Called with a text: from then on `mpirun` prints that, and is the only command;
    the path of it."""

    def put(text):
        tool = tmp_path / "mpirun"
        tool.write_text(f'#!/bin/sh\n[ "$*" = --version ] && echo "{text}"\n')
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        return str(tool)

    return put


def examined(mpirun):
    """What the doctor says of MPI."""
    where = {"mpirun": mpirun}
    return cluster.tools(lambda name, path=None: where.get(name), lambda: None)[1]


@pytest.mark.parametrize("says, name", [
    (OPEN_MPI, "Open MPI"), (MPICH, "MPICH"), (INTEL, "Intel MPI"),
    ("mpirun 1.0\nof mine", "mpirun 1.0"), ("", "unknown origin"),
])
def test_an_mpirun_is_known_by_what_it_says(say, says, name):
    assert submitted.implementation(say(says)) == name


def test_without_an_mpirun_there_is_no_implementation():
    assert submitted.implementation("/nowhere/mpirun") is None


def test_open_mpi_is_taken(say):
    found = examined(say(OPEN_MPI))
    assert (found.text, found.state) == ("mpirun of Open MPI", "ok")
    plan.make(["x"], 1, 1, launcher="mpi")


def test_another_one_is_refused_by_name_before_it_is_run(say):
    found = examined(say(MPICH))
    assert found.text == ("mpirun of MPICH, which the launcher mpi refuses: it is for "
                          "Open MPI")
    assert (found.state, found.advice) == ("note", "sudo apt-get install openmpi-bin")
    with pytest.raises(ValueError, match="mpirun here is MPICH, .*openmpi-bin"):
        plan.make(["x"], 1, 1, launcher="mpi")


def test_a_path_that_mpirun_would_divide_is_refused(say):
    say(OPEN_MPI)
    with pytest.raises(ValueError, match="ssh_config='/a b/config': mpirun splits"):
        plan.make(["x"], 1, 1, launcher="mpi", hosts=["h"], ssh_config="/a b/config")
    plan.make(["x"], 1, 1, launcher="mpi", hosts=["h"], ssh_config="/a_b/config")


def test_advice_of_ssh_can_be_pasted_whatever_the_path(tmp_path):
    config = tmp_path / "a b"
    config.write_text("UserKnownHostsFile /k\n")
    settings = plan.make(["x"], hosts=["h"], ssh_config=str(config)).settings
    said = explain("no RSA host key is known for h", settings.hosts[0], settings)
    assert f"`ssh -F '{config}' -o BatchMode=no " in said


def test_a_configuration_that_ssh_cannot_read_is_told_by_ssh_itself(tmp_path):
    settings = plan.make(["x"], hosts=["h"], ssh_config=str(tmp_path / "no")).settings
    said = "Can't open user config file no: No such file or directory"
    assert explain(f"{said}\n", settings.hosts[0], settings) == said
    said = explain("IDENTIFICATION HAS CHANGED", settings.hosts[0], settings)
    known = Path("~/.ssh/known_hosts").expanduser()
    assert f"`ssh-keygen -R h -f {known}`" in said
