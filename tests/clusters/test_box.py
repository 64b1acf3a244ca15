"""A cluster in a box: its hosts, links and keys, and that nothing of it stays."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest
from job_checks import wait_for

import netbox as box
from benchmarks.clusters.bad_networks import job
from bookkit.findings import tell
from netbox import cluster as making
from netbox import machine

HOLDS = """
import sys
import netbox as box
with box.Cluster(hosts=1) as made:
    print(made.folder, made.switch.pid, flush=True)
    made.hosts[0].popen(["sh", "-c", "setsid sleep 1000 & sleep 1000"])
    sys.stdin.read()
"""


def test_hosts_know_each_other_by_name_and_have_names_of_their_own(cluster):
    for host in cluster.hosts:
        done = cluster.head.run(["ssh", host.name, "hostname; hostname -i"], timeout=20)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"{host.name}\n{host.address}\n"


def test_an_unknown_name_is_refused_at_once(cluster):
    """Where a name does not resolve in time, every start of a job stalls."""

    def seconds_to_refuse():
        clock, ask = time.monotonic(), ["getent", "hosts", "nobody"]
        assert cluster.head.run(ask, timeout=20).returncode == 2
        return time.monotonic() - clock

    # Five seconds is what a resolver waits for an answer.
    tell("refused in less:", lambda seconds: seconds < 5, seconds_to_refuse)


def test_a_private_folder_is_one_hosts_alone_and_the_rest_is_shared(cluster, tmp_path):
    one, two = cluster.hosts[:2]
    assert one.private == two.private
    one.run(["sh", "-c", f"echo own > {one.private}/f; echo all > {tmp_path}/f"])
    assert (one.disk / "f").read_text() == "own\n" and not (two.disk / "f").exists()
    assert two.run(["cat", f"{tmp_path}/f"]).stdout == "all\n"


def test_processes_of_a_host_are_seen_and_signals_reach_them(cluster):
    host = cluster.hosts[0]
    wait_for(lambda: not host.processes(), 5)  # its sshd is none of them
    trap = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    for signum, code in ((signal.SIGTERM, 7), (signal.SIGKILL, -9)):
        with host.popen(["sh", "-c", trap], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            assert host.processes() and not cluster.hosts[1].processes()
            process.send_signal(signum)
        assert process.returncode == code
        wait_for(lambda: not host.processes(), 5)


def test_output_and_codes_come_back_and_a_missing_command_is_127(cluster):
    host = cluster.hosts[0]
    done = host.run(["sh", "-c", "cat; echo err >&2; exit 3"], input="in")
    assert (done.returncode, done.stdout, done.stderr) == (3, "in", "err\n")
    assert host.run(["no-such-command"]).returncode == 127
    with pytest.raises(subprocess.TimeoutExpired):
        host.run(["sleep", "100"], timeout=0.5)
    wait_for(lambda: not host.processes(), 5)
    with pytest.raises(subprocess.CalledProcessError):
        host.run(["false"], check=True)
    endless = "while :; do echo x; done | head -n 1"  # ends by a signal
    done = host.run(["sh", "-c", endless], timeout=60)
    assert (done.stdout, done.stderr) == ("x\n", "")


# ---- Links ----


def seconds_to_send(cluster, host, address, size=800_000):
    clock = time.monotonic()
    words = f"head -c {size} /dev/zero | ssh {address} 'cat > /dev/null'"
    assert cluster.head.run(["sh", "-c", words], timeout=60).returncode == 0
    return time.monotonic() - clock


def test_a_shaped_link_is_slow_both_ways_until_the_shape_is_taken_off(cluster):
    host = cluster.hosts[1]
    host.shape(rate="1mbit")
    assert seconds_to_send(cluster, host, host.address) > 5  # of 6.4, less a burst
    quick = partial(tell, "not shaped:", lambda seconds: seconds < 5)
    quick(lambda: seconds_to_send(cluster, host, host.second_address))
    host.shape(rate="500kbit")  # another shape takes its place
    host.shape()
    quick(lambda: seconds_to_send(cluster, host, host.address))
    assert "tbf" not in host.machine.tool(["tc", "qdisc", "show"])


#: Says nothing to anybody: nobody listens on that port.
SEND = """
import socket, sys
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[2])):
    out.sendto(b"x", (sys.argv[1], 9))
"""


def share_lost(sender, address, receiver, packets=4000):
    """Of datagrams that one host sends to an address of another."""

    def arrived():
        text = Path(f"/proc/{receiver.machine.pid}/net/snmp").read_text()
        names, values = (x.split() for x in text.splitlines() if x.startswith("Udp:"))
        return int(values[names.index("NoPorts")])

    before = arrived()
    words = [sys.executable, "-S", "-c", SEND, address, str(packets)]
    sender.run(words, check=True, timeout=30)
    return 1 - (arrived() - before) / packets


def test_packets_are_lost_on_their_way_to_and_from_a_lossy_host_and_nowhere_else(
    cluster
):
    one, two, three = cluster.hosts
    one.shape(loss=0.08)
    assert share_lost(one, two.address, two) == pytest.approx(0.08, abs=0.025)
    assert share_lost(two, one.address, one) == pytest.approx(0.08, abs=0.025)
    assert share_lost(two, one.second_address, one) == 0
    two.shape(loss=0.3)  # a packet passes both links
    together = 1 - 0.92 * 0.7
    assert share_lost(one, two.address, two) == pytest.approx(together, abs=0.04)
    two.power_off()
    two.power_on()  # in good order, but for what one does to it
    assert share_lost(three, two.address, two) == 0
    assert share_lost(one, two.address, two) == pytest.approx(0.08, abs=0.025)
    one.shape()
    assert share_lost(one, two.address, two) == share_lost(two, one.address, one) == 0


def test_tcp_sends_again_what_a_link_loses(cluster):
    """Packet by packet. Bytes are counted by interface."""
    host, size = cluster.hosts[1], 500_000
    before = {name: host.bytes(name) for name in ("eth0", "eth1")}
    again = job.tcp(cluster.head)["sent again"]
    host.shape(loss=0.08)
    seconds_to_send(cluster, host, host.address, size)
    rules = host.machine.tool(["iptables-save", "-c"])
    host.shape()
    again = job.tcp(cluster.head)["sent again"] - again
    assert again > 0.02 * size / 1448  # less would be a rare chance
    (dropped,) = re.findall(r"\[(\d+):(\d+)\].* -j DROP", rules)
    assert 0 < int(dropped[1]) <= 1500 * int(dropped[0])
    sent, received = (host.bytes("eth0")[i] - before["eth0"][i] for i in (0, 1))
    assert received > size > sent
    assert host.bytes("eth1")[1] - before["eth1"][1] < 5000
    with pytest.raises(ValueError, match="no interface 'eth7'"):
        host.bytes("eth7")


# ---- Power ----


def test_a_host_without_power_is_gone_without_a_word_and_may_come_back(cluster):
    host = cluster.hosts[2]
    (host.disk / "kept").write_text("kept")
    wait = f"ssh {host.name} 'echo up; exec sleep 1000'"
    with cluster.head.popen(["sh", "-c", wait], stdout=subprocess.PIPE) as client:
        client.stdout.readline()
        assert host.processes()
        host.power_off()
        host.power_off()
        assert host.processes() == []
        time.sleep(1)
        assert client.poll() is None, "the host said good-bye"
        client.kill()
    with pytest.raises(OSError, match="h3 is switched off"):
        host.run(["true"])
    host.power_on()
    assert host.run(["cat", f"{host.private}/kept"]).stdout == "kept"
    done = cluster.head.run(["ssh", "h3", "hostname"], timeout=20)
    assert (done.stdout, done.stderr) == ("h3\n", "")


def test_a_host_whose_cables_are_pulled_runs_on(cluster):
    host = cluster.hosts[2]
    words = ["ssh", "-o", "ConnectTimeout=1", host.name, "true"]
    host.cut()
    assert cluster.head.run(words, timeout=20).returncode == 255
    words[2] = "ConnectTimeout=15"
    assert host.run(["true"]).returncode == 0
    host.mend()
    assert cluster.head.run(words, timeout=20).returncode == 0


# ---- ssh ----


def test_sshd_lets_in_this_key_alone_and_no_password(cluster, tmp_path):
    making.keys.make_key(str(tmp_path / "other"), "other")
    alone = ["-o", f"IdentityFile={tmp_path}/other", "-F", "/dev/null", "-o",
             f"UserKnownHostsFile={cluster.known_hosts}", "-p", str(cluster.port)]
    done = cluster.head.run(["ssh", "-o", "BatchMode=yes", *alone, "h1", "true"])
    assert done.returncode == 255
    assert "Permission denied (publickey)" in done.stderr


def test_two_boxes_do_not_see_each_other(cluster):
    with box.Cluster(hosts=1) as other:
        assert other.hosts[0].address == cluster.hosts[0].address
        assert other.head.run(["ssh", "h1", "hostname"]).stdout == "h1\n"
        assert other.head.run(["getent", "hosts", "h2"]).returncode == 2


# ---- The end ----


@pytest.mark.parametrize("signum", [None, signal.SIGINT, signal.SIGKILL])
def test_nothing_of_a_box_outlives_its_process(why_no_box, signum, tmp_path):
    if why_no_box:
        pytest.skip(why_no_box)
    process = subprocess.Popen([sys.executable, "-c", HOLDS], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env={**os.environ, "TMPDIR": str(tmp_path)}, text=True)
    folder, switch = process.stdout.readline().split()
    assert networks_of(folder) and list(map(str, tmp_path.iterdir())) == [folder]
    if signum:
        process.send_signal(signum)
    process.communicate()  # else the end of its input is its end
    wait_for(lambda: not networks_of(folder) and not Path(f"/proc/{switch}").exists())
    wait_for(lambda: not list(tmp_path.iterdir()))


def networks_of(folder):
    """Processes whose command line names the box's folder, in whatever host."""
    name, found = folder.encode(), []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if name in path.joinpath("mountinfo").read_bytes():
                found.append(path.name)
        except OSError:
            continue
    return found


def test_of_the_folders_that_are_there_those_in_use_are_boxes(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    locks = []
    for name in ("left", "used"):
        folder = tmp_path / f"{making.PREFIX}{name}"
        folder.mkdir()
        locks.append(os.open(folder / "lock", os.O_CREAT | os.O_WRONLY))
    making.fcntl.flock(locks[1], making.fcntl.LOCK_EX)
    assert making.boxes() == [tmp_path / f"{making.PREFIX}used"]
    for lock in locks:
        os.close(lock)


# ---- Where there is none ----


def test_what_is_missing_is_named_with_the_package_that_has_it(monkeypatch):
    monkeypatch.setattr(machine, "find", lambda name: None if name == "sshd" else name)
    assert box.why_not() == ("A cluster in a box needs sshd: install Debian's openssh-"
                             "server, or what corresponds to it.")
    with pytest.raises(OSError, match="needs sshd"):
        box.Cluster(hosts=1)


def test_a_system_without_namespaces_is_named_with_its_reason(monkeypatch):
    def refuse(*_, **__):
        raise OSError("unshare: Operation not permitted")

    monkeypatch.setattr(machine, "find", lambda name: name)
    monkeypatch.setattr(machine, "Namespaces", refuse)
    who = "this user" if os.geteuid() else "root"
    assert box.why_not() == ("A cluster in a box needs namespaces, and " + who +
                             " gets none: unshare: Operation not permitted.")


@pytest.mark.parametrize("hosts", [0, 51, 2.5, "3"])
def test_a_box_of_no_whole_number_of_hosts_or_too_many_is_refused(hosts):
    with pytest.raises(ValueError, match=f"hosts={hosts!r}: give a whole number from "
                       "1 to 50"):
        box.Cluster(hosts=hosts)
