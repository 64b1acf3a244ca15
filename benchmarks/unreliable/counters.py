"""What a host's TCP has to tell: segments sent, sent again, and why."""

from pathlib import Path

#: Linux's names, in /proc/net/snmp and /proc/net/netstat, and what they count.
NAMES = {
    ("Tcp", "OutSegs"): "segments",
    ("Tcp", "RetransSegs"): "sent again",
    ("TcpExt", "TCPFastRetrans"): "at once",  # later segments were acknowledged
    ("TcpExt", "TCPTimeouts"): "after a timer",  # nothing was acknowledged
    ("TcpExt", "TCPLossProbes"): "probes",
}


def tcp(host):
    """The counters of `host`, a `box.Host`, since it is on: a dict of numbers."""
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
    """By how much the counters of several hosts have grown, all together."""
    pairs = [(new, old) for new, old in zip(after, before)]
    return {name: sum(new[name] - old[name] for new, old in pairs)
            for name in pairs[0][0]}  # fmt: skip
