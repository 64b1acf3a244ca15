"""Jobs over ssh: where processes run, what they are given, and what they train."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy
import trained
from job_checks import PYTHON, nothing_left, wait_for  # noqa: F401
from over_ssh import (
    WORDS,
    launch,
    nodes,
    nothing_stays,  # noqa: F401
    start,
    words_of,
)

from pslaunch import plan, ssh
from pslaunch.plan import Host

NASTY = ["a;touch x", "$(touch x)", "`touch x`", "a b", "'", '"', "line\nline", "",
         "ä→日本", "*", "\\", "| touch x", "&& touch x", "~", "\t", "-s",
         "$HOME"]
#: The name of a file.
ODD = "-e a b;*'$(x)\n\"ä"
#: Folders that a host should have of its own, or need not have.
UNWANTED = {".git", ".venv", "__pycache__"}
TRAIN = [*trained.TRAIN[1:], "--save-prefix", "kept/net"]


def test_weights_equal_those_of_a_local_job_with_a_shared_and_with_a_copied_folder(
    cluster, tmp_path
):
    """Two workers: a sum of two gradients does not depend on which came first."""
    shared, work = tmp_path / "shared", tmp_path / "work"
    for folder in (shared, work):
        folder.mkdir()
    (work / "data.txt").write_text("copied")
    (work / ODD).write_text("copied too")
    (work / ODD).chmod(0o775)
    for name in UNWANTED:
        (work / name).mkdir()
        (work / name / "file").write_text("not copied")
    done = launch(cluster, "python", *TRAIN, cwd=shared)
    assert done.returncode == 0, done.stderr
    there = f"{cluster.hosts[0].private}/no/such folder; yet"
    config = tmp_path / "a configuration of ssh"
    shutil.copy(cluster.ssh_config, config)
    done = launch(cluster, "--sync-dst-dir", there, "--ssh-config", config, "sh", "-c",
                  'cat data.txt && exec python "$@"', "sh", *TRAIN, cwd=work)
    assert done.returncode == 0, done.stderr
    assert f"copied {work} to h1:{there}, without .git" in done.stderr
    assert not (work / "kept").exists()
    copies = [host.disk / "no/such folder; yet" for host in cluster.hosts]
    for copy in copies:
        assert (copy / ODD).stat().st_mode & 0o777 == 0o775
        assert UNWANTED.isdisjoint(os.listdir(copy))
    (copied,) = [copy for copy in copies if any(copy.glob("kept/net*"))]
    expected = trained.local_weights(tmp_path)
    assert expected.size > 1000
    for folder in (shared, copied):
        found = trained.weights(folder / "kept/net")
        numpy.testing.assert_array_equal(found, expected)
    for host in cluster.hosts:
        shutil.rmtree(host.disk / "no", ignore_errors=True)


def test_hostile_arguments_and_values_arrive_unchanged(cluster, tmp_path):
    nasty = "".join(NASTY)
    done = launch(cluster, "--env", f"T_NASTY:{nasty}", *WORDS, *NASTY, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = words_of(done)
    assert sorted(found) == ["worker-0", "worker-1"]
    for words in found.values():
        assert words["argv"] == NASTY
        assert words["env"]["T_NASTY"] == nasty
    for host in cluster.hosts:
        assert host.run(["sh", "-c", "ls ~/x"]).returncode != 0
    assert not (tmp_path / "x").exists()


def test_variables_reach_other_hosts_and_stand_on_no_command_line(
    cluster, monkeypatch, tmp_path
):
    passed_on = ["D2L_EXT_X", "KMP_TEST", "MXNET_TEST", "OMP_TEST"]
    for name in (*passed_on, "T_NOT_PASSED", "PS_DROP_MSG"):
        monkeypatch.setenv(name, "5ecret")
    show = f"""import os, json, time
while not os.path.exists({str(tmp_path / "go")!r}): time.sleep(0.05)
print(json.dumps({{k: v for k, v in os.environ.items() if v[::-1] == "terce5"}}))"""
    with start(cluster, "--env-worker", "T_W:5ecret", "python", "-c", show) as process:
        wait_for(lambda: {("worker", "h2"), ("worker", "h3")} < set(nodes(cluster)))
        lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
        (tmp_path / "go").touch()
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    given = {line.split(" | ")[0].strip(): json.loads(line.split(" | ")[1])
             for line in out.splitlines()}
    assert given["worker-0"] == given["worker-1"]
    assert sorted(given["worker-0"]) == [*passed_on, "T_W"]
    ours = [line for line in lines if b"pslaunch" in line and b"T_W" in line]
    others = [line for line in lines if b"5ecret" in line and line not in ours]
    assert not others


def test_everybody_listens_on_the_hosts_network_or_that_which_was_chosen(cluster):
    for flags, subnet in ((), "10.77.0."), (("--interface", "eth1"), "10.78.0."):
        flags = (*flags, "--ps-verbose", "1")
        found = words_of(launch(cluster, *flags, *WORDS, workers=3))
        envs = [found[f"worker-{rank}"]["env"] for rank in range(3)]
        assert {env["DMLC_PS_ROOT_URI"] for env in envs} == {f"{subnet}1"}
        # Servers take h1; workers h2, h3, h1. ps-lite ranks by address, descending.
        assert [env["DMLC_NODE_HOST"] for env in envs] == [
            f"{subnet}{last}" for last in (13, 12, 11)]
        assert [env["DMLC_WORKER_ID"] for env in envs] == ["0", "1", "2"]
        assert [env["PS_VERBOSE"] for env in envs] == ["1"] * 3


CALLS = """
import sys
import pslaunch as launch

def worker(kv, value):
    import platform
    import mxnet as mx
    kv.init("a", mx.nd.zeros(500000))
    kv.push("a", mx.nd.full(500000, value))
    out = mx.nd.zeros(500000)
    kv.pull("a", out=out)
    return [kv.rank, platform.node(), out[-2:]]

job = launch.call_job(worker, 3.0, num_workers=2, hosts=["h1", "h2", "h3"],
                      interface="eth1")
print(job.returncode, [[r, n, a.tolist()] for r, n, a in job.results])
"""


def test_a_function_is_called_on_other_hosts_and_its_bytes_take_the_chosen_interface(
    cluster, tmp_path
):
    (tmp_path / "calls.py").write_text(CALLS)
    before = {name: cluster.hosts[0].bytes(name) for name in ("eth0", "eth1")}
    done = cluster.head.run([PYTHON, tmp_path / "calls.py"], timeout=300)
    assert done.stdout == "0 [[0, 'h3', [6.0, 6.0]], [1, 'h2', [6.0, 6.0]]]\n", (
        done.stderr)
    sent = {name: cluster.hosts[0].bytes(name)[0] - before[name][0] for name in before}
    assert sent["eth1"] > 4_000_000 and sent["eth0"] < 400_000


#: What a user may have set for all hosts, and what it is in a job.
SET = {"ForwardAgent": ("yes", "no"), "ForwardX11": ("yes", "no"),
       "ClearAllForwardings": ("no", "yes"), "PermitLocalCommand": ("yes", "no"),
       "RemoteCommand": ("ls", None), "ControlPath": ("/tmp/control", None),
       "StrictHostKeyChecking": ("no", "true"), "BatchMode": ("no", "yes"),
       "RequestTTY": ("force", "false")}


def test_a_users_configuration_of_ssh_opens_nothing_and_asks_nothing(tmp_path):
    config = tmp_path / "config"
    config.write_text("".join(f"{name} {own}\n" for name, (own, _) in SET.items()))
    words = ssh.client(plan.Settings(ssh_config=config), Host("h1"))
    told = subprocess.run([*words, "-G", "h1"], check=True, capture_output=True,
                          text=True).stdout
    found = dict(line.split(" ", 1) for line in told.splitlines())
    for name, (_, in_a_job) in SET.items():
        assert found.get(name.lower()) == in_a_job, name
