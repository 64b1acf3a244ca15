"""A host of a box and its links, without one: which tools are called, and when."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from netbox import host, inside, links
from netbox.machine import Namespaces


class PlayedMachine:
    """Writes its network's commands down; runs the commands of its host here."""

    def __init__(self, name, user=None, binds=None, calls=None, pid=None):
        self.name, self.user = name, user
        self.calls, self.pid = calls, pid or os.getpid()
        self.said = {}

    def wait(self):
        self.calls.append(f"{self.name} waits")

    def end(self):
        self.calls.append(f"{self.name} ends")

    def ip(self, *lines):
        self.calls.extend(f"{self.name} ip {line}" for line in lines)

    def tool(self, command, text=""):
        self.calls.append(" ".join([self.name, *command, text.replace("\n", "/")]))
        return next((said for key, said in self.said.items() if key in command), "")

    def command(self, words, user):
        return words


@pytest.fixture
def calls():
    return []


@pytest.fixture
def switch(calls):
    return PlayedMachine("switch", calls=calls, pid=4001)


@pytest.fixture
def hosts(tmp_path, monkeypatch, calls, switch):
    """h1 and h2, which are off, with two interfaces each."""
    monkeypatch.setattr(
        host, "Namespaces", lambda *words: PlayedMachine(*words, calls=calls)
    )
    cluster = SimpleNamespace(folder=tmp_path, second_interface=True, switch=switch,
                              inner_user=None, outer_user=(1000, 1001), port=22,
                              sshd="/sshd")
    cluster.hosts = [host.Host(cluster, "h1", 11), host.Host(cluster, "h2", 12)]
    cluster.head = host.Host(cluster, "head", 1)
    for one in (cluster.head, *cluster.hosts):
        (tmp_path / one.name).mkdir()
    ended = SimpleNamespace(pid=os.getpid(), poll=lambda: None, wait=lambda: None)
    monkeypatch.setattr(host.Host, "_start_sshd", lambda self: setattr(
        self, "sshd", calls.append(f"{self.name} starts sshd") or ended))
    monkeypatch.setattr(host.Host, "_listeners", lambda self: 2)
    return cluster.hosts


# ---- Hosts ----


def test_a_host_that_is_switched_on_is_plugged_in_before_its_sshd_starts(hosts, calls):
    """With the MAC addresses that others remember, if it was on before."""
    hosts[0].power_on()
    steps = [call for call in calls if " ip " not in call]
    assert steps == ["h1 waits", "h1 starts sshd"]
    cards = [re.search(r"eth\d address \S+", call)[0] for call in calls
             if "type veth" in call]
    assert cards == ["eth0 address 02:00:00:00:00:0b", "eth1 address 02:00:00:00:01:0b"]
    assert calls.index("h1 ip link set eth1 up") < calls.index("h1 starts sshd")


def test_a_host_that_is_on_stays_as_it_is(hosts, calls):
    hosts[0].power_on()
    done = list(calls)
    hosts[0].power_on()
    assert calls == done and hosts[0].machine.name == "h1"


@pytest.mark.parametrize("ask", [
    lambda one: one.run(["true"]), lambda one: one.shape(rate="1mbit"),
    lambda one: one.bytes(), lambda one: one.cut(), lambda one: one.mend()])
def test_a_host_that_is_off_or_not_on_yet_says_so(hosts, ask):
    one = hosts[0]
    with pytest.raises(OSError, match="h1 is switched off"):
        ask(one)
    one.power_on(wait=False)
    one.machine.pid = None  # until `wait`
    with pytest.raises(OSError, match=r"h1 is not on yet: call power_on\(\)"):
        ask(one)
    assert one.processes() == []


def test_an_interface_that_a_host_lacks_is_not_shaped(hosts, calls):
    one = hosts[0]
    one.power_on()
    calls.clear()
    with pytest.raises(ValueError, match="no interface 'lo' to shape: choose eth0 or"):
        one.shape(interface="lo")
    one.second_address = None
    with pytest.raises(ValueError, match="no interface 'eth1' to shape: choose eth0$"):
        one.shape(rate="1mbit", interface="eth1")
    assert calls == []


def test_a_host_whose_sshd_does_not_start_is_off_and_says_why(
    hosts, calls, monkeypatch, tmp_path
):
    one = hosts[0]
    monkeypatch.setattr(host.Host, "_listeners", lambda _: 0)
    monkeypatch.setattr(host, "BOOT", -1)
    (tmp_path / "h1" / "sshd.log").write_text("no port\n")
    with pytest.raises(OSError, match="sshd of h1 did not start: no port$"):
        one.power_on()
    assert "h1 ends" in calls and one.machine is None and one.sshd is None
    monkeypatch.setattr(host.Host, "_listeners", lambda _: 2)
    calls.clear()
    one.power_on()
    assert "h1 starts sshd" in calls


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_host_whose_start_is_interrupted_or_fails_is_off_and_starts_again(
    hosts, calls, monkeypatch, error
):
    def plug(*_):
        raise error

    one = hosts[0]
    with monkeypatch.context() as patch, pytest.raises(error):
        patch.setattr(links, "plug", plug)
        one.power_on()
    assert one.machine is None and "h1 ends" in calls
    calls.clear()
    one.power_on()
    assert [call for call in calls if " ip " not in call] == [
        "h1 waits", "h1 starts sshd"]


def test_a_host_is_switched_off_even_if_the_switch_is_gone(hosts, calls, monkeypatch):
    one = hosts[0]
    one.power_on()

    def gone(*_):
        raise OSError("no process 4001")

    monkeypatch.setattr(one.cluster.switch, "ip", gone)
    one.power_off()
    assert "h1 ends" in calls and one.machine is None


def test_sshd_starts_from_a_folder_with_a_space_with_a_new_log(tmp_path, monkeypatch):
    folder = tmp_path / "my box"
    (folder / "h1").mkdir(parents=True)
    (folder / "h1" / "sshd.log").write_text("of the last start\n")
    for name in ("ssh_host_key", "sshd_config", "authorized_keys"):
        (folder / "h1" / name).write_text(name)
    monkeypatch.setattr(host.keys, "OWN", str(tmp_path / "own"))
    one = host.Host(SimpleNamespace(folder=folder, second_interface=False,
                                    sshd="/bin/echo"), "h1", 11)
    one.popen = subprocess.Popen
    one._start_sshd()
    assert one.sshd.wait() == 0
    assert (tmp_path / "own" / "sshd_config").read_text() == "sshd_config"
    log = (folder / "h1" / "sshd.log").read_text()
    assert log == f"-D -e -f {tmp_path}/own/sshd_config\n"


# ---- Links ----


def shaped(calls, switch, before="qdisc noqueue 0:", **how):
    """What `links.shape` does to eth0 of h1, beside h2, and to the switch."""
    one, two = (PlayedMachine(name, calls=calls) for name in ("h1", "h2"))
    for machine in (one, two, switch):
        machine.said.update({"qdisc": before, "address": "inet 10.77.0.11/24 scope"})
    calls.clear()
    links.shape(switch, one, [two], 0, **how)
    changes = (call for call in calls if " show " not in call and " -S" not in call)
    return [call.rstrip() for call in changes]


def test_a_rate_holds_at_both_ends_and_a_delay_at_the_hosts(switch, calls):
    tbf = "root handle 1: tbf rate 1mbit burst 64kb latency 200ms"
    ends = [f"{name} tc qdisc add dev {port} {tbf}"
            for name, port in (("h1", "eth0"), ("switch", "h1.0"))]
    assert shaped(calls, switch, rate="1mbit") == ends
    assert shaped(calls, switch, rate="1mbit", delay="20ms") == [
        *ends, "h1 tc qdisc add dev eth0 parent 1:1 netem delay 20ms"]
    assert shaped(calls, switch, delay="20ms") == [
        "h1 tc qdisc add dev eth0 root netem delay 20ms"]


@pytest.mark.parametrize("wrong", [
    {"rate": "fast"}, {"rate": "fast; reboot"}, {"delay": "20"}, {"loss": 1.0},
    {"loss": 1.5}, {"loss": -0.1}])
def test_a_wrong_shape_is_refused_before_a_tool_is_called(wrong, switch, calls):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
        shaped(calls, switch, **wrong)
    assert calls == []


@pytest.mark.parametrize("said, told", [
    ("Error: Specified qdisc kind is unknown.", "this kernel cannot delay packets"),
    ('Illegal "latency"', '^Illegal "latency"$')])
def test_the_kernel_is_blamed_only_for_what_it_lacks(said, told, calls):
    one = PlayedMachine("h1", calls=calls)

    def tool(command):
        raise OSError(said)

    one.tool = tool
    with pytest.raises(OSError, match=told):
        links._delay(one, "eth0", "20foo", below=None)


# ---- Machines ----


def test_a_machine_ends_although_a_forked_child_keeps_its_pipe_open():
    machine = Namespaces.of_pid("h1", 4011, None)
    # Ends after a line, as a holder does, or by `timeout` with code 124.
    machine.holder = subprocess.Popen(["timeout", "20", "sh", "-c", "read x"],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    inherited = os.dup(machine.holder.stdin.fileno())
    machine.end()
    machine.end()  # does no harm
    assert machine.holder.returncode == 0
    os.close(inherited)


def test_why_a_machine_failed_is_said_without_the_id_of_its_process_1():
    machine = Namespaces.of_pid("h1", None, None)
    machine.holder = subprocess.Popen(
        ["sh", "-c", "echo 22501; echo error mount: denied; read x"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with pytest.raises(OSError, match="not create machine h1: mount: denied$"):
        machine.wait()


def test_a_tool_is_found_in_the_folders_in_which_why_not_looks(monkeypatch, calls):
    done = SimpleNamespace(returncode=0, stdout="said")
    monkeypatch.setattr("netbox.machine.find", lambda name: f"/usr/sbin/{name}")
    monkeypatch.setattr(subprocess, "run",
                        lambda words, **_: calls.append(words) or done)
    assert Namespaces.of_pid("h1", 4011, False).tool(["tc", "qdisc"]) == "said"
    assert calls == [["nsenter", "--target", "4011", "--net", "/usr/sbin/tc", "qdisc"]]


@pytest.fixture
def program(monkeypatch, calls):
    """`inside.py`, which is run as a program; libc is only asked."""
    monkeypatch.setattr(inside, "call_libc", lambda *words: calls.append(words))
    monkeypatch.setattr(inside, "map_ids", lambda *ids: calls.append(ids))


def test_in_a_users_box_a_command_is_the_user_again_in_a_namespace_below_roots(
    program, calls
):
    inside.become("1000:1001")
    assert calls == [("unshare", 0x10000000), (1000, 0, 1001, 0)]


def test_in_a_users_box_the_user_is_root_of_a_machine(program, calls):
    inside.become_root()
    mapped = (0, os.getuid(), 0, os.getgid())
    assert calls == [("unshare", 0x10000000), mapped]


@pytest.mark.parametrize("user, as_user, word", [
    (None, (1, 2), "-"), (True, (1, 2), "1:2"), (True, None, "root")])
def test_a_command_enters_a_machine_as_root_the_caller_or_a_user(user, as_user, word):
    words = Namespaces.of_pid("h1", 4011, user).command(["ls", "-l"], as_user)
    assert words[0] == sys.executable and os.path.basename(words[-6]) == "inside.py"
    assert words[-5:] == ["enter", "4011", word, "ls", "-l"]
