"""A job on the hosts of a box, one node to a host, watched from outside of it."""

import os
import subprocess
import sys
import time
from pathlib import Path

from d2l_ext.temporary import Folder
from pslaunch import environment, results, source, values

from . import counters
from .outcome import MET, Outcome

PORT, READY, ATTEMPTS = 9000, 100, 3


def run(cluster, function, *args, num_servers=1, env=None, deadline=200,
        kv_type="dist_sync", node_host=True, leave=4):  # fmt: skip
    """Run `function(kv, *args)` in a worker on each free host; return an `Outcome`.

    The scheduler and server 0 are on the first host of `cluster`, a `box.Cluster`;
    each further server has a host, and so has each worker. `env`: more variables for
    all. `deadline`: seconds until it is given up. `node_host`: whether each node is
    told its address on eth0, by `DMLC_NODE_HOST`. `leave`: seconds that nodes have to
    end by themselves after the last result.

    Nothing is sent to start the nodes: what the interfaces count is the job's own.
    A job whose workers have not met after `READY` seconds is started again.
    """
    options = (num_servers, env, deadline, kv_type, node_host, leave)
    for _ in range(ATTEMPTS):
        found = _once(cluster, function, args, *options)
        if found.results is not None or found.began():
            break
    return found


def _once(cluster, function, args, num_servers, env, deadline, kv_type, node_host,
          leave):  # fmt: skip
    begin = time.monotonic()
    with Folder("d2l_ext-unreliable-") as folder:
        folder = Path(folder)
        nodes = _nodes(cluster, num_servers)
        workers = sum(role == "worker" for role, *_ in nodes)
        _write(folder, function, kv_type, args)
        before, running = _counted(cluster), {}

        def over():
            late = time.monotonic() > begin + READY and not _met(folder)
            return _all_there(folder, workers) or _failed(running) or late

        try:
            for role, number, host in nodes:
                running[f"{role}-{number}"] = _start(
                    role, number, host, nodes, folder, env, node_host)  # fmt: skip
            _wait(over, begin + deadline)
            seconds, after = time.monotonic() - begin, _counted(cluster)
            if _all_there(folder, workers):
                _wait(lambda: all(p.poll() is not None for p in running.values()),
                      time.monotonic() + leave)  # fmt: skip
        finally:
            codes = _end(running)
        found = Outcome(codes=codes, seconds=seconds)
        found.tcp = counters.grown(before[0], after[0])
        found.moved = _difference(after[1], before[1])
        found.logs = {name: _text(folder / name) for name in running}
        if _all_there(folder, workers):
            found.results = results.take(folder, 1, workers)
        return found


def _counted(cluster):
    return [counters.tcp(host) for host in cluster.hosts], _moved(cluster)


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
                         "more is needed for each worker")  # fmt: skip
    return [("scheduler", 0, hosts[0]), *servers, *workers]


def _write(folder, function, kv_type, args):
    text = source.script(function)
    (folder / "function.py").write_text(text, encoding="utf-8")
    record = {"name": function.__name__, "kv_type": kv_type, "args": args, "np": True}
    values.save(folder / "call", record)


def _start(role, number, host, nodes, folder, env, node_host):
    names = [(who, i) for who, i, _ in nodes]
    ports = [PORT + i for i in range(len(names))]
    own = {
        "DMLC_PS_ROOT_URI": nodes[0][2].address,
        "DMLC_NODE_HOST": host.address,
        "PS_VERBOSE": "1",
        **environment.check(env),
    }
    variables = environment.of_node(role, number, names, ports, folder.name, own)
    if not node_host:
        del variables["DMLC_NODE_HOST"]
    module = "remote" if role == "worker" else "node"
    command = [sys.executable, "-m", f"pslaunch.{module}"]
    command += [str(folder)] if role == "worker" else []
    with open(folder / f"{role}-{number}", "wb") as log:
        return host.popen(command, env={**environment.inherited(), **variables},
                          stdin=subprocess.DEVNULL, stdout=log,
                          stderr=subprocess.STDOUT,
                          cwd=os.fspath(Path(__file__).parents[2]))  # fmt: skip


def _moved(cluster):
    cards = ["eth0", "eth1"] if cluster.second_interface else ["eth0"]
    return {host.name: {card: list(host.bytes(card)) for card in cards}
            for host in cluster.hosts}  # fmt: skip


def _difference(now, before):
    return {name: {card: [new - old for new, old in zip(pair, before[name][card])]
                   for card, pair in cards.items()}
            for name, cards in now.items()}  # fmt: skip


def _all_there(folder, workers):
    return all(results.is_there(folder, 1, rank) for rank in range(workers))


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
