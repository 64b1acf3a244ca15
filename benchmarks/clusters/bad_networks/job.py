"""A job on the hosts of a box whose network is made worse, watched from outside of it.

Each node has a host. Nodes are started without ssh, so interfaces and TCP count only
the job's own bytes.
"""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import netbox as box
from pslaunch import calls, plan
from pslaunch.temporary import Folder

PORT, READY, ATTEMPTS = 9000, 300, 3
#: What ps-lite's log says when a message is dropped, sent again, or came twice.
SAID = {
    "dropped": "Drop message",
    "sent again": "Timeout to get the ACK message",
    "came twice": "Duplicated message",
}
#: What the scheduler says when the workers have met for the first time.
MET = "Barrier count for 4 : "
#: Linux's names, in /proc/net/snmp and /proc/net/netstat, and what they count.
NAMES = {
    ("Tcp", "OutSegs"): "segments",
    ("Tcp", "RetransSegs"): "sent again",
    ("TcpExt", "TCPFastRetrans"): "at once",  # later segments were acknowledged
    ("TcpExt", "TCPTimeouts"): "after a timer",  # nothing was acknowledged
    ("TcpExt", "TCPLossProbes"): "probes",
}


@contextmanager
def hosts(count, algorithm="cubic", **options):
    """Run a box of `count` hosts, all with one congestion control.

    `algorithm`: of TCP, as Linux names it; the systems of readers differ in their
    default. `options`: of `netbox.Cluster`. Yields the cluster.
    """
    with box.Cluster(count, **options) as cluster:
        for host in cluster.hosts:
            prepare(host, algorithm)
        yield cluster


def prepare(host, algorithm, *options):
    """Set up the route of `host` on eth0; `options`: more words of `ip route`."""
    network = host.address.rpartition(".")[0] + ".0/24"
    host.machine.tool(["ip", "route", "change", network, "dev", "eth0", "src",
                       host.address, "congctl", algorithm, *options])


def limit(cluster, mbit):
    """Give the links of all hosts `mbit` Mbit/s, in each direction."""
    for host in cluster.hosts:
        host.shape(rate=f"{mbit}mbit")


def lose(cluster, probability):
    """Lose each packet between hosts with this probability; 0 undoes it.

    A packet passes the links of two hosts. Takes the place of `limit`.
    """
    for host in cluster.hosts:
        host.shape(loss=1 - (1 - probability) ** 0.5)


@dataclass
class Outcome:
    """What became of a job.

    `results`: what each worker returned, in the order of `kv.rank`; None unless all
    did. `codes`: exit code of each node, None when it was still running and was
    killed. `seconds`: until the last result, or until it was given up. `logs`: the
    text of each node. `moved`: bytes sent and received by each host on each interface,
    as in `moved["h2"]["eth0"]`. `tcp`: counters of all hosts together, see `NAMES`.
    """

    results: list = None
    codes: dict = field(default_factory=dict)
    seconds: float = 0.0
    logs: dict = field(default_factory=dict)
    moved: dict = field(default_factory=dict)
    tcp: dict = field(default_factory=dict)

    def check(self):
        """Return this outcome, or raise `RuntimeError` when there are no results."""
        if self.results is None:
            ends = "\n".join(f"{n}: {t[-300:]}" for n, t in self.logs.items() if t)
            raise RuntimeError(f"no results after {self.seconds:.0f} s, exit codes "
                               f"{self.codes}\n{ends}")
        return self

    def began(self):
        """Return whether the workers met, and work began."""
        return MET in self.logs["scheduler-0"]

    def said(self):
        """Return how many messages ps-lite dropped, sent again, and received twice."""
        text = "\n".join(self.logs.values())
        return {what: text.count(words) for what, words in SAID.items()}

    def aborted(self):
        """Return the nodes that gave up after ten retries."""
        words = re.compile(r"Check failed: \S*num_retry")
        return [name for name, text in self.logs.items() if words.search(text)]


def run(cluster, function, *args, num_servers=1, env=None, deadline=900,
        kv_type="dist_sync", node_host=True, leave=4):
    """Run `function(kv, *args)` in a worker on each free host; return an `Outcome`.

    The scheduler and server 0 are on the first host of `cluster`, a `netbox.Cluster`;
    each further server has a host, and so has each worker. `env`: more variables for
    all. `deadline`: seconds until it is given up. `node_host`: whether each node is
    told its address on eth0, by `DMLC_NODE_HOST`. `leave`: seconds that nodes have to
    end by themselves after the last result.

    A job that ends before its workers have met (a node failed, or `READY` or `deadline`
    seconds passed) is started again, `ATTEMPTS` times in all, each with its deadline.
    """
    options = (num_servers, env, deadline, kv_type, node_host, leave)
    for _ in range(ATTEMPTS):
        found = _once(cluster, function, args, *options)
        if found.results is not None or found.began():
            break
    return found


def _once(cluster, function, args, num_servers, env, deadline, kv_type, node_host,
          leave):
    begin = time.monotonic()
    with Folder("d2l_ext-unreliable-") as folder:
        folder = Path(folder)
        nodes = _nodes(cluster, num_servers)
        workers = sum(role == "worker" for role, *_ in nodes)
        calls.write_call(folder, function, kv_type, args, uses_np=True)
        before, running = _counted(cluster), {}

        def over():
            late = time.monotonic() > begin + READY and not _met(folder)
            return _all_there(folder, workers) or _failed(running) or late

        try:
            for role, number, host in nodes:
                running[f"{role}-{number}"] = _start(
                    role, number, host, nodes, folder, env, node_host)
            _wait(over, begin + deadline)
            seconds, after = time.monotonic() - begin, _counted(cluster)
            if _all_there(folder, workers):
                _wait(lambda: all(p.poll() is not None for p in running.values()),
                      time.monotonic() + leave)
        finally:
            codes = _end(running)
        found = Outcome(codes=codes, seconds=seconds)
        found.tcp = grown(before[0], after[0])
        found.moved = _difference(after[1], before[1])
        found.logs = {name: _text(folder / name) for name in running}
        if _all_there(folder, workers):
            found.results = calls.read_results(folder, 1, workers)
        return found


def _counted(cluster):
    return [tcp(host) for host in cluster.hosts], _moved(cluster)


def _text(path):
    return path.read_text(errors="replace")


def _met(folder):
    return MET in _text(folder / "scheduler-0")


def _nodes(cluster, num_servers):
    hosts = cluster.hosts
    servers = [("server", i, hosts[i]) for i in range(num_servers)]
    workers = [("worker", i, host) for i, host in enumerate(hosts[num_servers:])]
    if not workers:
        raise ValueError(f"{len(hosts)} hosts: {num_servers} are for servers, so one "
                         "more is needed for each worker")
    return [("scheduler", 0, hosts[0]), *servers, *workers]


def _start(role, number, host, nodes, folder, env, node_host):
    names = [(who, i) for who, i, _ in nodes]
    ports = [PORT + i for i in range(len(names))]
    own = {
        "DMLC_PS_ROOT_URI": nodes[0][2].address,
        "DMLC_NODE_HOST": host.address,
        "PS_VERBOSE": "1",
        **plan.user_variables(env),
    }
    variables = plan.variables_of(role, number, names, ports, folder.name, own)
    if not node_host:
        del variables["DMLC_NODE_HOST"]
    module = "calls" if role == "worker" else "node"
    command = [sys.executable, "-m", f"pslaunch.{module}"]
    command += [str(folder)] if role == "worker" else []
    with open(folder / f"{role}-{number}", "wb") as log:
        return host.popen(command, env={**plan.inherited(), **variables},
                          stdin=subprocess.DEVNULL, stdout=log,
                          stderr=subprocess.STDOUT,
                          cwd=os.fspath(Path(__file__).parents[3]))


def _moved(cluster):
    cards = ["eth0", "eth1"] if cluster.second_interface else ["eth0"]
    return {host.name: {card: list(host.bytes(card)) for card in cards}
            for host in cluster.hosts}


def _difference(now, before):
    return {name: {card: [new - old for new, old in zip(pair, before[name][card])]
                   for card, pair in cards.items()}
            for name, cards in now.items()}


def _all_there(folder, workers):
    return all(calls.is_there(folder, 1, rank) for rank in range(workers))


def _failed(running):
    return any(process.poll() not in (None, 0) for process in running.values())


def _wait(condition, until):
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _end(running):
    codes = {name: process.poll() for name, process in running.items()}
    for process in running.values():
        process.kill()
    for process in running.values():
        process.wait()
    return codes


def tcp(host):
    """Return the counters of TCP since `host`, a `netbox.Host`, was switched on:
    segments sent, sent again, and why; a dict of numbers.
    """
    found = {}
    for table in ("snmp", "netstat"):
        lines = Path(f"/proc/{host.machine.pid}/net/{table}").read_text().splitlines()
        for names, numbers in zip(lines[::2], lines[1::2]):
            group = names.partition(":")[0]
            for name, number in zip(names.split()[1:], numbers.split()[1:]):
                if (group, name) in NAMES:
                    found[NAMES[group, name]] = int(number)
    return found


def grown(before, after):
    """Return the growth of the counters of several hosts, summed over hosts: a dict."""
    pairs = [(new, old) for new, old in zip(after, before)]
    return {name: sum(new[name] - old[name] for new, old in pairs)
            for name in pairs[0][0]}
