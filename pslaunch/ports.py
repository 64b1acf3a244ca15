"""Ports that no other launcher takes at the same moment, and addresses of this host.

Standard library alone: agents run on hosts that have no packages.
"""

import fcntl
import random
import socket
import struct
from contextlib import contextmanager, suppress
from pathlib import Path

#: Below the ports that the system gives to connections (from 32768 on Linux).
#: There a node that connects to a port where nobody listens yet may be given that
#: very port as its own, and so be connected to itself.
FIRST, LAST = 10000, 32000
TRIES = 200
#: Where ps-lite puts a socket named as the port, with `DMLC_LOCAL=1`.
LOCAL = "/tmp"
SIOCGIFADDR = 0x8915
#: Of netlink: a protocol, a type of message, flags, and two types of answers; of TCP's
#: states, that of those who listen.
SOCK_DIAG, SOCK_DIAG_BY_FAMILY, DUMP, FAILED, ENDED, LISTEN = 4, 20, 0x301, 2, 3, 10
#: The code of `Refused`, when somebody else has a port.
TAKEN = 98


class Refused(Exception):
    """It cannot be done. `code`: as of a shell, 126 or 127."""

    def __init__(self, text, code=1):
        self.code = code
        super().__init__(text)


@contextmanager
def reserve(count, hold=None):
    """Give `count` ports in ascending order, free now, until the `with` ends.

    `hold`: how many, from the first, are claimed; default all. The others are claimed
    by those who will use them, perhaps on other hosts.

    Each is claimed by a socket with a name in Linux's abstract namespace, for which
    there is no file and which goes with its process. A port itself can't be held:
    ps-lite must bind it. Raises `OSError` when there are none.
    """
    claims = {}
    try:
        for _ in range(TRIES + 10 * count):
            port = random.SystemRandom().randint(FIRST, LAST)
            with suppress(Refused):
                claims[port] = claim(port)
            if len(claims) == count:
                break
        else:
            raise OSError(f"no {count} free ports between {FIRST} and {LAST}")
        for port in sorted(claims)[count if hold is None else hold :]:
            claims[port].close()
        yield sorted(claims)
    finally:
        for held in claims.values():
            held.close()


def claim(port):
    """Keep other launchers and agents off `port`, while the socket returned is open.

    Raises `Refused` when it is claimed, or no process could listen on it.
    """
    own = socket.socket(socket.AF_UNIX)
    try:
        own.bind(f"\0pslaunch:{port}")
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("", port))
    except OSError:
        own.close()
        raise Refused(f"port {port} is taken", TAKEN) from None
    return own


def listening():
    """Addresses on which processes of this machine listen: a set of (IPv4, port).

    Of this network namespace; ps-lite has no IPv6. The files that stand for ports with
    `DMLC_LOCAL=1` are of the address `'/tmp'`.
    """
    names = {row.split()[-1] for row in Path("/proc/net/unix").read_text().splitlines()}
    files = [Path(name) for name in names if name.startswith(f"{LOCAL}/")]
    found = {(LOCAL, int(path.name)) for path in files if path.name.isdecimal()}
    try:
        return found.union(_asked_for())
    except OSError:  # as in some containers
        return found.union(_read())


def _asked_for():
    """The same of TCP, from the kernel, by `sock_diag(7)`: it takes 0.2 ms, where the
    table in /proc takes 13, for which the kernel goes through all connections."""
    ask = struct.pack("=IHHIIBBBBI48x", 72, SOCK_DIAG_BY_FAMILY, DUMP, 0, 0,
                      socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 1 << LISTEN)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as kernel:
        kernel.send(ask)
        while True:
            rest = kernel.recv(1 << 16)
            while rest:
                size, kind = struct.unpack_from("=IH", rest)
                if kind == ENDED:
                    return
                if kind == FAILED:
                    raise OSError("the kernel does not tell")
                port, ip = struct.unpack_from(">H2x4s", rest, 20)
                yield socket.inet_ntoa(ip), port
                rest = rest[(size + 3) // 4 * 4 :]


def _read():
    for row in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_ = row.split()
        ip, port = map(bytes.fromhex, local.split(":"))
        if int(state, 16) == LISTEN:
            yield socket.inet_ntoa(ip[::-1]), int.from_bytes(port, "big")


def is_listening(port):
    """Whether somebody on this machine listens on `port`."""
    return any(number == port for _, number in listening())


def remove_files(ports):
    """Remove the sockets that killed nodes left with `DMLC_LOCAL=1`."""
    for path in (Path(LOCAL, str(port)) for port in ports):
        if path.is_socket():
            path.unlink(missing_ok=True)


def address(root, interface=None):
    """The IPv4 address of an interface, or that from which `root` is reached."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            if not interface:
                probe.connect((root, 9))  # sends nothing
                return probe.getsockname()[0]
            name = struct.pack("256s", interface.encode()[:15])
            return socket.inet_ntoa(fcntl.ioctl(probe, SIOCGIFADDR, name)[20:24])
        except OSError as error:
            if not interface:
                raise Refused(f"there is no way to {root}: {error.strerror}") from None
            there = ", ".join(name for _, name in socket.if_nameindex())
            raise Refused(f"no address on interface {interface!r}; there is {there}"
                          ) from None  # fmt: skip
