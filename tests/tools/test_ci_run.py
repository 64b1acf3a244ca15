"""What .ci/run installs on a machine that lacks something, and that it then tests."""

import shutil

import pytest
from played_machine import TOOLS, Machine

from browser import PROGRAMS

ROOT = TOOLS.parent


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path / "bin")


@pytest.fixture
def ran(machine, tmp_path):
    """A function: what apt-get and make are told when the machine has `programs`."""
    log = tmp_path / "log"
    for folder in (".ci", "tools"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "tools" / "cluster_packages.sh").symlink_to(shutil.which("true"))

    def run(*programs, fails=""):
        for name in ("apt-get", "make", "git", "uv", *programs):
            fail = "exit 1" if name in fails.split() else ""
            machine.add(name, f'echo "{name} $*" >> {log}; {fail}')
        machine.add("id", "echo 0")
        machine.add("ldconfig", "echo 'libgomp.so.1 libquadmath.so.0 '")
        machine.add("grep", f'exec {shutil.which("grep")} "$@"')
        done = machine.run(tmp_path / ".ci" / "run")
        return done, log.read_text().splitlines()

    return run


TESTED = ["make test", "make html"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_any_browser_that_the_tests_can_drive_will_do(ran, name):
    assert ran(name)[1] == TESTED


def test_without_a_browser_chromium_is_installed(ran):
    done, told = ran()
    assert done.returncode == 0
    assert told[0] == "apt-get -qq update"
    assert told[1].startswith("apt-get -qq install --yes")
    assert told[1].endswith(" chromium fonts-dejavu-core")
    assert told[2:] == TESTED


def test_where_none_can_be_installed_the_tests_run_all_the_same(ran):
    done, told = ran(fails="apt-get")
    assert done.returncode == 0 and told[-2:] == TESTED


def test_a_test_that_fails_fails_the_run(ran):
    done, told = ran("chromium", fails="make")
    assert done.returncode == 1 and told == ["make test"]
