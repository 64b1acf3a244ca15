"""The scheduler says why it cannot start, and finds frozen processes by heartbeats:
they send nothing and break nothing."""

import d2l_ext  # noqa: F401, I001
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
from job_checks import JOBS, PYTHON, nodes_of, nothing_left, wait_for  # noqa: F401

import pslaunch as launch
from pslaunch import node

BEATS = {"PS_HEARTBEAT_INTERVAL": 1, "PS_HEARTBEAT_TIMEOUT": 3}
#: Seconds in which a job must end after a node was frozen: the time-out, two of
#: rounding, and time for all processes to end on a machine with much to do.
BOUND = 20


@pytest.mark.parametrize("role, rank", [("worker", 1), ("server", 0)])
def test_a_frozen_process_ends_the_job_and_is_named(role, rank, nothing_left, tmp_path):  # noqa: F811
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(launch.run, [PYTHON, str(JOBS / "steps.py")], env=BEATS,
                          deadline=300, log_dir=tmp_path)
        log = tmp_path / "worker-1.log"
        wait_for(lambda: log.exists() and b"step 5" in log.read_bytes())
        os.kill(nodes_of(nothing_left)[role, rank], signal.SIGSTOP)
        clock = time.monotonic()
        job = job.result()
    assert 3 <= time.monotonic() - clock < BOUND
    assert (job.returncode, job.culprit) == (1, "scheduler-0")
    assert f"no heartbeat for 3 s: {role} {rank}\n" in job.output("scheduler", 0)


def test_a_job_slower_to_start_than_the_time_out_is_not_lost():
    script = ("import os, time; time.sleep(5 * int(os.environ['DMLC_WORKER_ID'])); "
              "import d2l_ext, mxnet; mxnet.kv.create('dist_sync'); time.sleep(5)")
    job = launch.run([PYTHON, "-c", script], env=BEATS)
    assert job.returncode == 0, job.last_lines()


def test_a_time_out_without_a_heartbeat_in_it_is_refused():
    environ = {"PS_HEARTBEAT_INTERVAL": "5", "PS_HEARTBEAT_TIMEOUT": "5"}
    with pytest.raises(ValueError, match="TIMEOUT=5: give more than .* heartbeats, 5"):
        node.watch_heartbeats(None, None, environ)


def test_a_scheduler_that_cannot_start_ends_with_the_reason_as_its_error(monkeypatch):
    library = Mock(**{"MXKVStoreCreate.return_value": -1,
                      "MXGetLastError.return_value": b"no such van"})
    monkeypatch.setattr(node.ctypes, "CDLL", lambda *_: library)
    with pytest.raises(SystemExit, match="no such van"):
        node.run_scheduler()
