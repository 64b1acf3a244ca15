"""What every test of a job is held to: a deadline, and nothing that stays behind."""

import gc
import os
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock
from uuid import uuid4

import pytest

from pslaunch import processes

MARK = "D2L_EXT_TEST"
#: Seconds for a test. The longest takes 20 on an idle machine.
HANGS = 500
JOBS = Path(__file__).with_name("jobs")
PYTHON = sys.executable
CLI = [sys.executable, "-m", "pslaunch"]


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch, tmp_path):
    """A deadline for the test, which only a hang meets; then no process, port or file
    is left."""
    mark, folder = uuid4().hex, tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(HANGS)
    yield mark
    signal.alarm(0)
    gc.collect()
    left = alive(mark)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, "processes were left behind"
    wait_for(lambda: not list(folder.iterdir()))  # or files were left behind
    assert not claims(), "a claim on a port was left behind"


def _too_late(*_):
    raise TimeoutError(f"the test took more than {HANGS} s")


def alive(mark):
    """Ids of the processes that a test has started, whatever became of them since."""
    return [pid for pid in processes.ids() if processes.environ(pid).get(MARK) == mark]


def command(pid):
    """The command line of a process as one text; empty when it is gone."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0")
        return text.replace(b"\0", b" ").decode(errors="replace")
    return ""


def sleeping(seconds):
    """Processes that sleep so long."""
    return [pid for pid in processes.ids() if command(pid) == f"sleep {seconds}"]


def nodes_of(mark):
    """The running nodes of a test's jobs: a dict, ('worker', 0) to process id."""
    found = reversed([(processes.node_of(pid), pid) for pid in alive(mark)])
    return {node: pid for node, pid in found if node}  # the first, not its children


def no_guard():
    """Stands for a `crew.Guard` where nothing is started on this host."""
    return Mock(parent=None, **{"channel.pump.return_value": []})


def claims():
    """Claims on ports by this process."""
    mine = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
            if os.path.islink(f"/proc/self/fd/{fd}")}
    lines = Path("/proc/net/unix").read_text().splitlines()
    return [x for x in lines if "@pslaunch:" in x
            and f"socket:[{x.split()[6]}]" in mine]


def free_port():
    """A port on which nobody listens, nor another run of the tests."""
    with socket.create_server(("", 0)) as server:
        return server.getsockname()[1]


def wait_for(condition, seconds=60):
    """Wait until `condition()` is true, and return its value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not so within {seconds} s: {condition}")
