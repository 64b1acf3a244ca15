"""The hosts file, and who goes where."""

import re
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as some

import d2l_ext  # noqa: F401
from pslaunch import __main__ as command_line
from pslaunch import crew, plan, ssh
from pslaunch.channel import Channel
from pslaunch.crew import Local
from pslaunch.plan import Host, place, read_hosts


def test_each_line_is_a_host_with_perhaps_a_port_a_user_and_slots(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("# all\nh1\n\n 10.0.0.12:2222 # 2\nalice@h-3.example slots=4\n")
    assert read_hosts(path) == [Host("h1"), Host("10.0.0.12", 2222),
                          Host("h-3.example", None, "alice", 4)]
    assert [str(host) for host in read_hosts(path)] == [
        "h1", "10.0.0.12:2222", "alice@h-3.example"]


@pytest.mark.parametrize("lines, message", [
    ([], "hosts: no hosts: write one"),
    (["# h1"], "no hosts: write one"),
    (["h1", "h2", "h1:22"], "hosts, line 3: h1 is repeated, first in line 1"),
    (["h1 h2"], "hosts, line 1: 'h1 h2' is not a host"),
    (["-oProxyCommand=x"], "'-oProxyCommand=x' is not a host"),
    (["h1;reboot"], "'h1;reboot' is not a host"),
    (["$(reboot)"], "is not a host"),
    (["h1:0"], "port 0 is not between"),
    (["h1:65536"], "port 65536 is not between"),
    (["h1:ssh"], "'h1:ssh' is not a host"),
    (["h1 slots=0"], "is not a host"),
    (["-l@h1"], "is not a host"),
    (["[::1]:22"], "is not a host"),
])
def test_a_line_that_is_no_host_is_named_with_its_number(lines, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_hosts(lines)


def test_a_hosts_file_that_is_none_or_no_text_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="hosts"):
        read_hosts(tmp_path / "hosts")
    (tmp_path / "hosts").write_bytes(b"h1\n\xff")
    with pytest.raises(ValueError, match="hosts is not a hosts file in UTF-8"):
        read_hosts(tmp_path / "hosts")


@given(some.text(max_size=30))
def test_no_line_that_is_read_holds_what_ssh_or_a_shell_could_take_for_more(text):
    try:
        found = read_hosts([text])
    except ValueError:
        return
    for host in found:
        assert re.fullmatch(r"[\w.@:-]+", str(host)) and not str(host).startswith("-")


def test_servers_then_workers_take_turns_on_the_hosts():
    """Claim of MXNet's pages: servers on 1, 2, 3, workers on 4, 5, 1."""
    five = read_hosts(["h1", "h2", "h3", "h4", "h5"])
    assert [(role, host.name) for role, host in place(five, 3, 3)] == [
        ("server", "h1"), ("server", "h2"), ("server", "h3"),
        ("worker", "h4"), ("worker", "h5"), ("worker", "h1"),
    ]


def test_nodes_are_numbered_as_ps_lite_ranks_them(monkeypatch):
    """By address, descending and as text; with equal addresses, as they are placed."""
    made = plan.make(["x"], 4, 1, hosts=["a", "b"])
    team = crew.Crew(made, "job", "10.0.0.1", print, None)
    monkeypatch.setattr(Channel, "__init__", lambda *_: None)
    team.channels = []
    addresses = [("server", "10.0.0.9"), ("worker", "10.0.0.10"),
                 ("worker", "10.0.0.9"), ("worker", "10.0.0.10"),
                 ("worker", "10.0.0.2")]
    for number, (role, address) in enumerate(addresses):
        channel = Channel()
        channel.role, channel.address, channel.number = role, address, number
        team.channels.append(channel)
    team._place(team.channels)
    assert {node: channel.number for node, channel in team.placed.items()} == {
        ("server", 0): 0, ("worker", 0): 2, ("worker", 1): 4,
        ("worker", 2): 1, ("worker", 3): 3,
    }


def test_the_scheduler_is_where_other_hosts_reach_it(monkeypatch):
    """A first host that is this computer sees it at an address of no use to others."""
    ways = {"here": "127.0.0.1", "h2": "10.0.0.1"}
    monkeypatch.setattr(plan, "_resolve", lambda _, host: host.name)
    monkeypatch.setattr(plan, "own_address", lambda root: ways[root])
    for names, expected in ((["here", "h2"], "10.0.0.1"), (["here"], "127.0.0.1")):
        made = plan.make(["x"], 1, 1, hosts=names)
        assert plan.scheduler_address(made) == expected


def test_a_name_that_means_this_computer_to_itself_is_no_address_for_others(
        monkeypatch):
    """Debian gives a computer's own name to 127.0.1.1."""
    monkeypatch.setattr(plan, "own_address", lambda root: "10.0.0.5")
    for own, expected in (("127.0.1.1", "10.0.0.5"), ("10.0.0.7", "10.0.0.7")):
        monkeypatch.setattr(plan.socket, "gethostbyname", lambda name: own)  # noqa: B023
        assert plan.scheduler_address(plan.make(["x"])) == expected


def test_a_copy_that_still_runs_is_ended_with_the_job(monkeypatch):
    monkeypatch.setattr(ssh, "rsync", lambda settings, host: ["sleep", "100"])
    monkeypatch.setattr(ssh, "agent_command", lambda settings, host: ["sleep", "100"])
    made = plan.make(["x"], 1, 1, hosts=["h1", "h2"], sync_dst_dir="/there")
    mark = uuid4().hex  # no other test, beside this one, ends the processes of this job
    team = ssh.Ssh(made, mark, "127.0.0.1", print, None)
    monkeypatch.setattr(team, "pump", lambda: None)
    assert not team.gathered()
    for link in team.channels:
        link.address = "127.0.0.1"
    assert not team.gathered() and len(team.copies) == 2
    team.over.set()
    team.close()
    clients = [client for client, _ in team.clients.values()]
    assert [one.returncode for one in [*team.copies.values(), *clients]] == [-9] * 4
    for link in team.channels:
        link.close()


def test_a_dry_run_says_what_would_run_on_each_host(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(ssh.shutil, "which", lambda name: name)  # rsync
    (tmp_path / "hosts").write_text("h1\nh2\nh3\n")
    flags = f"-n 3 -s 1 -H {tmp_path}/hosts --env T_TOKEN:5ecret --sync-dst-dir /there"
    command_line.main([*flags.split(), "--dry-run", "echo", "a b"])
    copy = f"  copy: {Path.cwd()} to /there"
    worker = "  worker: DMLC_ROLE=worker T_TOKEN=… echo 'a b'"
    server = f"  server: DMLC_ROLE=server T_TOKEN=… {sys.executable} -m pslaunch.node"
    assert capsys.readouterr().out.splitlines() == [
        "here: scheduler-0", "h1:", copy, server, worker, "h2:", copy, worker,
        "h3:", copy, worker]


def test_paths_may_be_paths():
    paths = {"sync_dst_dir": "/there", "ssh_config": "/a/config", "python": "/b/python"}
    made = plan.make(["x"], 1, 1, hosts=["h1"],
                     **{name: Path(text) for name, text in paths.items()})
    assert {name: getattr(made.settings, name) for name in paths} == paths


def test_hosts_mean_ssh():
    assert plan.make(["x"], 1, 1, hosts=["h1"]).launcher is ssh.Ssh
    assert plan.make(["x"], 1, 1).launcher is Local
