"""A cluster in a box, from a terminal: `python -m netbox up`, `run`, … `down`.

    python -m netbox up --hosts 3
    python -m netbox run head ssh h2 hostname
    python -m netbox shell head
    python -m netbox shape h2 --rate 100mbit --loss 0.05
    python -m netbox down

`up` leaves a process running that holds the box, until `down` ends it.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from . import links
from .cluster import Cluster, boxes
from .machine import Namespaces, why_not

STATE = "box.json"


def parser():
    flags = argparse.ArgumentParser(
        prog="python -m netbox", description=__doc__.partition("\n")[0],
        epilog=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = flags.add_subparsers(dest="do", required=True, metavar="COMMAND")

    def add(name, help):
        return commands.add_parser(name, help=help, allow_abbrev=False)

    starts = {"up": "start a box", "hold": "start a box in the foreground"}
    for name, help in starts.items():
        one = add(name, help)
        one.add_argument("--hosts", type=int, default=3,
                         help="number of hosts besides the head; default 3")
        one.add_argument("--second-interface", action="store_true",
                         help="give each host an eth1, too")
    add("show", "list the hosts and addresses of the running box")
    one = add("run", "run a command on a host")
    one.add_argument("host")
    one.add_argument("command", nargs=argparse.REMAINDER)
    one = add("shell", "open a shell on a host")
    one.add_argument("host", nargs="?", default="head")
    one = add("shape", "make a host's link slow or lossy; without values, undo that")
    one.add_argument("host")
    one.add_argument("--rate", help="as in 100mbit")
    one.add_argument("--delay", help="as in 20ms")
    one.add_argument("--loss", type=float, default=0.0, help="probability, like 0.05")
    one.add_argument("--interface", default="eth0", choices=("eth0", "eth1"))
    add("down", "end the box, and everything in it")
    return flags


def main(argv=None):
    """Run the command in `argv`; return its exit code."""
    args = parser().parse_args(argv)
    try:
        return globals()[args.do](args) or 0
    except (OSError, ValueError, LookupError) as error:
        print(f"box: {error.args[-1]}", file=sys.stderr)
        return 1


def up(args):
    if why_not():
        raise OSError(why_not())
    if _states():
        raise ValueError("a box is running already: `show` lists it, `down` ends it")
    words = [sys.executable, "-m", "netbox", "hold", "--hosts", str(args.hosts)]
    words += ["--second-interface"] if args.second_interface else []
    holder = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True,
                              stdout=subprocess.PIPE, text=True)
    if not holder.stdout.readline():
        return holder.wait()
    return show(args)


def hold(args):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Cluster(args.hosts, args.second_interface) as cluster:
        hosts = [cluster.head, *cluster.hosts]
        state = {
            "holder": os.getpid(), "user": cluster.outer_user,
            "switch": cluster.switch.pid, "hosts_file": cluster.hosts_file,
            "hosts": {host.name: [host.machine.pid, host.address,
                                  host.second_address] for host in hosts},
        }
        (cluster.folder / STATE).write_text(json.dumps(state))
        print("ready", flush=True)
        sys.stdout.close()
        while True:
            signal.pause()


def show(_):
    state = _state()
    for name, (_, *addresses) in state["hosts"].items():
        print(f"{name:5} {' '.join(filter(None, addresses))}")
    print(f"hosts file: {state['hosts_file']}")


def run(args):
    command = args.command[args.command[:1] == ["--"] :]
    if not command:
        raise ValueError("no command: give it after the host")
    machine, user = _machine(args.host)
    words = machine.command(command, user)
    os.execv(words[0], words)


def shell(args):
    args.command = [os.environ.get("SHELL", "/bin/sh")]
    run(args)


def shape(args):
    machine, _ = _machine(args.host)
    switch = Namespaces.of_pid("switch", _state()["switch"], machine.user)
    others = [_machine(name)[0] for name in _state()["hosts"] if name != args.host]
    links.shape(switch, machine, others, int(args.interface[-1]), args.rate,
                args.delay, args.loss)


def down(_):
    pid = _state()["holder"]
    os.kill(pid, signal.SIGTERM)
    while any(state["holder"] == pid for state in _states()):
        time.sleep(0.05)


def _machine(name):
    state = _state()
    if name not in state["hosts"]:
        raise LookupError(f"no host {name!r}: choose {', '.join(state['hosts'])}")
    pid, user = state["hosts"][name][0], state["user"]
    return Namespaces.of_pid(name, pid, bool(user)), user


def _states():
    """Return the state of each running box, as its `hold` has written it."""
    found = []
    for folder in boxes():
        with suppress(FileNotFoundError):  # not written yet, or its box has just ended
            found.append(json.loads(Path(folder, STATE).read_text()))
    return found


def _state():
    for state in _states():
        return state
    raise LookupError("no box is running: start one with `python -m netbox up`")


if __name__ == "__main__":
    sys.exit(main())
