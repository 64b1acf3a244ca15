"""Environment variables whose effect no chapter shows: what each of them changes."""

import d2l_ext  # noqa: I001
import json
import os
import re
import subprocess
from pathlib import Path

import psutil
import pytest
from job_checks import JOBS, PYTHON, nothing_left  # noqa: F401

import pslaunch as launch
from bookkit import by_hand
from pslaunch import processes

# ---- Read by MXNet in one process ----

#: Each with a value other than its default, and what it may change.
CHANGED = {
    "MXNET_EXEC_INPLACE_GRAD_SUM_CAP": "2",
    "MXNET_UPDATE_ON_KVSTORE": "0",
    "MXNET_OPTIMIZER_AGGREGATION_SIZE": "7",
    "MXNET_CPU_WORKER_NTHREADS": "5",
    "MXNET_CPU_PRIORITY_NTHREADS": "9",
    "MXNET_PROFILER_AUTOSTART": "1",
    "MXNET_SUBGRAPH_VERBOSE": "1",
}


def facts(folder, changed):
    """What `jobs/variables.py` finds in a process of its own, and its last error."""
    folder.mkdir()
    environ = {k: v for k, v in os.environ.items() if k not in CHANGED}
    environ["PYTHONPATH"] = str(Path(d2l_ext.__file__).parents[1])
    done = subprocess.run([PYTHON, str(JOBS / "variables.py")], check=True, cwd=folder,
                          env={**environ, **changed}, capture_output=True, text=True,
                          timeout=300)
    return {**json.loads(done.stdout), "says": done.stderr,
            "profile": (folder / "profile.json").exists()}


@pytest.fixture(scope="module")
def default_and_changed(tmp_path_factory):
    """The facts of a process with the defaults, and of one with all changed."""
    folder = tmp_path_factory.mktemp("variables")
    return facts(folder / "default", {}), facts(folder / "changed", CHANGED)


@pytest.mark.parametrize("variable, fact, default, changed", [
    ("MXNET_EXEC_INPLACE_GRAD_SUM_CAP", "gradient sums",
     {"_grad_add": 0, "add_n": 1}, {"_grad_add": 3, "add_n": 0}),
    ("MXNET_UPDATE_ON_KVSTORE", "updates on store", True, False),
    ("MXNET_OPTIMIZER_AGGREGATION_SIZE", "arrays in one update", 4, 7),
    ("MXNET_CPU_WORKER_NTHREADS", "threads of a second device", 1, 5),
    ("MXNET_PROFILER_AUTOSTART", "profile", False, True),
])
def test_a_variable_changes_what_the_page_says(
    default_and_changed, variable, fact, default, changed
):
    assert [found[fact] for found in default_and_changed] == [default, changed]


def test_priority_threads_are_started_with_the_engine(default_and_changed):
    """MXNET_CPU_PRIORITY_NTHREADS and MXNET_CPU_WORKER_NTHREADS: 5 and 4 more."""
    default, changed = (found["threads"] for found in default_and_changed)
    assert changed - default == (9 - 4) + (5 - 1)


def test_the_line_for_each_bound_symbol_can_be_wanted(default_and_changed):
    """MXNET_SUBGRAPH_VERBOSE, which the book sets to 0."""
    default, changed = (found["says"] for found in default_and_changed)
    assert "Subgraph backend" in changed and "Subgraph backend" not in default


# ---- Read by ps-lite, before it listens ----

#: Starts whatever node the environment names, with MXNet's library alone.
NODE = "from pslaunch import node; node.run_scheduler()"


def listens(role, **variables):
    """Start a node alone; what it says, and on which of two free ports it listens.

    `variables`: more environment variables; None takes one of the usual away, and
    `{port}` stands for the second port.
    """
    root, second = processes.free_ports(2)
    with by_hand.Processes(20) as started:
        usual = {"DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": str(root),
                 "DMLC_NUM_WORKER": "1", "DMLC_NUM_SERVER": "1", "PS_VERBOSE": "1",
                 "DMLC_NODE_HOST": "127.0.0.1"}
        env = {k: v.format(port=second) for k, v in {**usual, **variables}.items() if v}
        started.start("node", NODE, DMLC_ROLE=role, **env)
        started.wait_for(lambda: "Bind to" in started.output("node")
                         or not started.running())
        said = started.output("node")
        names = {root: "root", second: "second"}
        places = [x.laddr for x in psutil.net_connections("tcp4")
                  if x.status == psutil.CONN_LISTEN]
        return said, {(ip, names[port]) for ip, port in places if port in names}


def address(said):
    return re.search(r"Bind to .*ip=([^,]+),", said)[1]


def test_the_interface_counts_where_no_host_is_given():
    """DMLC_INTERFACE; with DMLC_NODE_HOST it is not even looked at."""
    said, _ = listens("server", DMLC_INTERFACE="lo", DMLC_NODE_HOST=None)
    assert address(said) == "127.0.0.1"
    said, _ = listens("server", DMLC_INTERFACE="none0", DMLC_NODE_HOST=None)
    assert "failed to get ip" in said
    said, _ = listens("server", DMLC_INTERFACE="none0")
    assert address(said) == "127.0.0.1"


def test_a_port_that_is_given_is_taken_and_else_it_is_drawn():
    """PORT, of servers and workers; the scheduler's is DMLC_PS_ROOT_PORT."""
    assert listens("server", PORT="{port}")[1] == {("127.0.0.1", "second")}
    assert listens("server")[1] == set()
    assert listens("scheduler", PORT="{port}")[1] == {("127.0.0.1", "root")}


def test_a_scheduler_in_kubernetes_listens_on_every_address():
    """DMLC_USE_KUBERNETES: its service has another address than its container."""
    assert listens("scheduler", DMLC_USE_KUBERNETES="1")[1] == {("0.0.0.0", "root")}


def test_a_local_job_uses_sockets_that_are_files():
    """DMLC_LOCAL. The socket stays behind: nobody removed it."""
    said, found = listens("scheduler", DMLC_LOCAL="1")
    port = int(re.search(r"port=(\d+)", said)[1])
    assert processes.is_listening(port) and not found
    processes.remove_sockets([port])
    assert not processes.is_listening(port)


def test_a_kind_of_transport_that_is_not_there_is_refused():
    """DMLC_PS_VAN_TYPE."""
    said, found = listens("scheduler", DMLC_PS_VAN_TYPE="pigeon")
    assert "Unsupported van type: pigeon" in said and not found


# ---- Read by ps-lite, and seen in its messages ----


def adds_up(kv, seconds):
    import time

    import mxnet as mx

    kv.init("a", mx.nd.zeros(2000))
    out = mx.nd.zeros(2000)
    kv.push("a", mx.nd.ones(2000))
    kv.pull("a", out=out)
    total = float(out.asnumpy().sum())
    time.sleep(seconds)
    return total


def control_messages(seconds=0, check=True, **env):
    """Kinds of control messages in the logs of a job, which adds up as it should."""
    job = launch.call_job(adds_up, seconds, num_workers=2, env=env, verbose=2,
                          check=check)
    assert job.results == [4000, 4000] or not check
    return set(re.findall(r"cmd=(\w+)", "".join(map(job._read, job.logs))))


def test_a_plain_job_sends_neither_receipts_nor_heartbeats():
    """DMLC_PS_WATER_MARK, set here, was not seen to do anything."""
    usual = {"ADD_NODE", "BARRIER", "TERMINATE"}
    assert control_messages(DMLC_PS_WATER_MARK=1) == usual


def test_heartbeats_and_receipts_are_sent_when_they_are_asked_for():
    """PS_HEARTBEAT_INTERVAL, in seconds, and PS_RESEND, with which ps-lite may abort
    at the end of a job."""
    asked = control_messages(1.2, check=False, PS_HEARTBEAT_INTERVAL=1, PS_RESEND=1)
    assert asked >= {"HEARTBEAT", "ACK"}


def test_messages_can_be_dropped_on_purpose():
    """PS_DROP_MSG: with all of them dropped, not even the first barrier is passed."""
    job = launch.call_job(adds_up, 0, num_workers=1, env={"PS_DROP_MSG": 100},
                          attempts=1, ready_timeout=1, check=False)
    assert job.returncode == 125 and "Drop message" in job.output("scheduler")


@pytest.mark.parametrize("kv_type, env, sent", [
    ("dist_sync", {"DMLC_PS_VAN_TYPE": "p3", "MXNET_KVSTORE_SLICE_THRESHOLD": 500},
     {2000}),
    ("dist_p3", {}, {8000}),
])
def test_the_p3_transport_sends_slices_and_the_name_of_a_store_does_not(
    kv_type, env, sent
):
    """DMLC_PS_VAN_TYPE and MXNET_KVSTORE_SLICE_THRESHOLD: bytes of 2000 numbers."""
    job = launch.call_job(adds_up, 0, num_workers=1, env=env, kv_type=kv_type,
                          verbose=2)
    assert job.results == [2000]
    pushes = re.findall(r"request=1.* push=1.*data_size=8 data_size=(\d+)",
                        job.output("worker"))
    assert set(map(int, pushes)) == sent
