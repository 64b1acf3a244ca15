"""A command runs as another machine would run it, and nothing stays behind."""

import errno
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from notebook_cells import ROOT

import on_machine

TOOL = [sys.executable, ROOT / "tools" / "on_machine.py"]


def on(profile, code):
    """What the Python `code` prints under `profile`; skips if it cannot be played."""
    ran = subprocess.run([*TOOL, profile, sys.executable, "-c", code],
                         capture_output=True, text=True, check=False)
    if ran.returncode == 2:
        pytest.skip(ran.stderr)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_half_a_core_limits_the_command_and_its_group_goes_with_it():
    where = "print(open('/proc/self/cgroup').read())"
    limit = (
        "import glob; print(*(open(f).read() for f in "
        "glob.glob('/sys/fs/cgroup/**/on-machine-*/cpu.*', recursive=True)))"
    )
    own = Path("/proc/self/cgroup").read_text().strip()
    assert "on-machine-" in on("half-a-core", where) != own
    assert "50000" in on("half-a-core", limit)
    assert on("plain", where) == own


def test_one_core_is_one_for_the_command_only():
    assert on("one-core", "import os; print(len(os.sched_getaffinity(0)))") == "1"


@pytest.mark.parametrize("profile, count", [("two-neighbours", 2), ("memory-hog", 1)])
def test_neighbours_run_beside_the_command_and_end_with_it(profile, count):
    pids = (
        "import os; children = f'/proc/{os.getppid()}/task/{os.getppid()}/children'; "
        "print(*(set(open(children).read().split()) - {str(os.getpid())}))"
    )
    found = on(profile, pids).split()
    assert len(found) == count
    assert not any(os.path.exists(f"/proc/{pid}") for pid in found)


def test_the_exit_status_is_the_commands():
    for code, status in (("raise SystemExit(7)", 7),
                         ("import os; os.kill(os.getpid(), 9)", 137)):
        command = [*TOOL, "plain", sys.executable, "-c", code]
        assert subprocess.run(command, check=False).returncode == status


def test_who_ends_the_tool_ends_the_command():
    sleeps = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    with subprocess.Popen([*TOOL, "plain", sys.executable, "-c", sleeps],
                          stdout=subprocess.PIPE, text=True) as tool:
        command = int(tool.stdout.readline())
        tool.terminate()
        assert tool.wait(10) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(command, 0)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOENT])
def test_what_cannot_be_played_is_said_and_who_may_is_said_where_that_helps(
    monkeypatch, capsys, number
):
    @contextmanager
    def refused():
        raise OSError(number, os.strerror(number), "/sys/fs/cgroup/a")
        yield

    monkeypatch.setitem(on_machine.PROFILES, "plain", ("", lambda: (refused(),)))
    assert on_machine.main(["plain", "true"]) == 2
    said = capsys.readouterr().err
    assert f"plain is impossible here: [Errno {number}]" in said
    assert ("Run this as root." in said) == (number == errno.EACCES)
