"""Jobs that are cut short: whoever dies, all ends within seconds, and is named."""

import d2l_ext  # noqa: F401, I001
import os
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from job_checks import (  # noqa: F401
    CLI, JOBS, PYTHON, alive, nodes_of, nothing_left, wait_for,
)

import pslaunch as launch
from d2l_ext import runtime
from pslaunch import processes, supervise

#: Seconds from a fault to the end of the job.
BOUND = 10


@pytest.fixture
def training(nothing_left, tmp_path):  # noqa: F811
    """A job in the middle of its steps: (future of the `Job`, ids of its processes)."""
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(launch.run, [PYTHON, str(JOBS / "steps.py")], num_workers=2,
                          deadline=300, log_dir=tmp_path / "logs")
        logs = [tmp_path / "logs" / f"worker-{i}.log" for i in (0, 1)]
        wait_for(lambda: all(f.exists() and b"step 5" in f.read_bytes() for f in logs))
        yield job, nodes_of(nothing_left)


@pytest.mark.parametrize("role, rank", [("worker", 1), ("server", 0), ("scheduler", 0)])
def test_a_killed_process_ends_the_job_and_is_named(training, role, rank):
    future, pids = training
    assert listening(pids.values()) == ["127.0.0.1"] * 4
    clock = time.monotonic()
    os.kill(pids[role, rank], signal.SIGKILL)
    job = future.result(timeout=300)
    assert time.monotonic() - clock < BOUND
    assert (job.returncode, job.attempts) == (137, 1)
    assert job.cause == f"{role} {rank} was ended by SIGKILL"
    if role == "worker":
        assert job.last_lines(1).startswith("step ")


def listening(pids):
    """The address of each socket on which these processes listen."""
    own = [x for pid in pids for x in psutil.Process(pid).net_connections("tcp")]
    return [x.laddr.ip for x in own if x.status == psutil.CONN_LISTEN]


def test_a_launcher_under_nohup_outlives_its_terminal(nothing_left):  # noqa: F811
    words = [*CLI, "-n", "1", "-s", "0", "sleep", "3"]
    ignoring = "trap '' HUP; exec \"$@\""  # as nohup does
    process = subprocess.Popen(["sh", "-c", ignoring, "sh", *words],
                               stderr=subprocess.PIPE, text=True)
    wait_for(lambda: ("worker", 0) in nodes_of(nothing_left))
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "ended well" in err


CALLER = """
import pslaunch as launch

def sleeps(kv):
    import time
    time.sleep(100)

launch.call(sleeps, kv_type=None)
"""


@pytest.mark.parametrize("what", ["its group", "all"])
def test_a_killed_caller_leaves_nothing_of_its_call_either(nothing_left, what):  # noqa: F811
    """Nor does a machine that tells all processes at once to end."""
    process = subprocess.Popen([PYTHON, "-c", CALLER], start_new_session=True)
    wait_for(lambda: len(nodes_of(nothing_left)) == 4)
    if what == "all":
        for pid in alive(nothing_left):
            os.kill(pid, signal.SIGTERM)
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    wait_for(lambda: not alive(nothing_left), BOUND)


def test_an_interrupt_in_a_notebook_ends_the_job_too(nothing_left):  # noqa: F811
    pressed = []

    def press():
        wait_for(lambda: len(nodes_of(nothing_left)) == 4)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        launch.run(["sleep", "100"])
    assert time.monotonic() - pressed[0] < BOUND
    assert not alive(nothing_left)


def test_an_interrupt_while_a_job_is_being_ended_ends_it_at_once(monkeypatch):
    """The fixture sees to the assertion."""
    graces, end = [], processes.end

    def interrupted(job, grace, under):
        graces.append(grace)
        if grace:
            raise KeyboardInterrupt
        return end(job, grace, under=under)

    monkeypatch.setattr(processes, "end", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch.run(["bash", "-c", "setsid sleep 100 & exit 3"])
    assert graces[0] == 2.0 and not any(graces[1:])


def kills_itself(kv):
    os.kill(os.getpid(), signal.SIGKILL)


def test_no_file_stays_that_stood_for_the_port_of_a_killed_node(monkeypatch):
    found, remove = [], processes.remove_sockets

    def remove_after_a_look(numbers):
        files = [Path(processes.SOCKETS, str(number)) for number in numbers]
        found.extend(path for path in files if path.is_socket())
        remove(numbers)

    monkeypatch.setattr(supervise, "remove_sockets", remove_after_a_look)
    job = launch.call_job(kills_itself, env={"DMLC_LOCAL": 1}, check=False)
    assert job.returncode == 137
    assert found and not any(path.exists() for path in found)


FAILS = """
import d2l_ext, mxnet
kv = mxnet.kv.create("dist_sync")
kv.init("weight", mxnet.nd.zeros(2))
assert kv.rank == 0, "on purpose"
kv._barrier()
"""


def test_a_worker_that_raises_does_not_wait_for_the_others():
    job = launch.run([PYTHON, "-c", FAILS], deadline=300)
    assert (job.returncode, job.cause) == (1, "worker 1 ended with code 1")
    assert job.last_lines(1) == "AssertionError: on purpose"


def test_the_other_roles_and_other_processes_keep_their_end():
    for environ in ({}, {"DMLC_ROLE": "server"}):
        system = type("System", (), {"excepthook": None})
        runtime.leave_on_error(environ, system)
        assert system.excepthook is None
