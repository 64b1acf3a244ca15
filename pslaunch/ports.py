"""Ports that no other launcher takes at the same moment."""

import random
import socket
from contextlib import closing, contextmanager
from pathlib import Path

#: Below the ports that the system gives to connections (from 32768 on Linux).
#: There a node that connects to a port where nobody listens yet may be given that
#: very port as its own, and so be connected to itself.
FIRST, LAST = 10000, 32000
TRIES = 200
#: Where ps-lite puts a socket named as the port, with `DMLC_LOCAL=1`.
LOCAL = "/tmp"


@contextmanager
def reserve(count, hold=None):
    """Give `count` ports in ascending order, free now, until the `with` ends.

    `hold`: how many, from the first, are claimed; default all. The others are claimed
    by those who will use them, perhaps on other hosts.

    Each is claimed by a socket with a name in Linux's abstract namespace, for which
    there is no file and which goes with its process. A port itself can't be held:
    ps-lite must bind it. Raises `OSError` when there are none.
    """
    claims = []
    try:
        for _ in range(TRIES + 10 * count):
            port = random.SystemRandom().randint(FIRST, LAST)
            claim = _claim(port) if is_free(port) else None
            if claim:
                claims.append((port, claim))
            if len(claims) == count:
                claims.sort(key=lambda pair: pair[0])
                for _, claim in claims[hold:] if hold is not None else ():
                    claim.close()
                yield [port for port, _ in claims]
                return
        raise OSError(f"no {count} free ports between {FIRST} and {LAST}")
    finally:
        for _, claim in claims:
            claim.close()


def _claim(port):
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0pslaunch:{port}")
    except OSError:
        claim.close()
        return None
    return claim


def is_free(port):
    """Whether a process could listen on `port` now, on any address."""
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def listening():
    """Addresses on which processes of this machine listen: a set of (IP, port).

    IPv4 and IPv6, of this network namespace. An IPv6 address is given in hex; the
    files that stand for ports with `DMLC_LOCAL=1` are of the address `'/tmp'`.
    """
    names = {row.split()[-1] for row in Path("/proc/net/unix").read_text().splitlines()}
    files = [Path(name) for name in names if name.startswith(f"{LOCAL}/")]
    found = {(LOCAL, int(path.name)) for path in files if path.name.isdecimal()}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            local, state = line.split()[1], line.split()[3]
            if state == "0A":  # LISTEN
                ip, port = local.split(":")
                found.add((_dotted(ip), int(port, 16)))
    return found


def remove_files(ports):
    """Remove the sockets that killed nodes left with `DMLC_LOCAL=1`."""
    for path in (Path(LOCAL, str(port)) for port in ports):
        if path.is_socket():
            path.unlink(missing_ok=True)


def _dotted(ip):
    if len(ip) != 8:
        return ip
    return socket.inet_ntoa(bytes.fromhex(ip)[::-1])  # the kernel's byte order
