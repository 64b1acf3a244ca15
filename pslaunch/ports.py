"""Ports that no other agent takes at the same moment, and addresses of this host."""

import fcntl
import random
import socket
import struct
from contextlib import suppress
from pathlib import Path

#: Below the ports that the system gives to connections (from 32768 on Linux).
#: There a node that connects to a port where nobody listens yet may be given that
#: very port as its own, and so be connected to itself.
FIRST, LAST = 10000, 32000
TRIES = 200
#: Where ps-lite puts a socket named as the port, with `DMLC_LOCAL=1`.
LOCAL = "/tmp"
SIOCGIFADDR = 0x8915
#: The code of `Refused`, when somebody else has a port.
TAKEN = 98


class Refused(Exception):
    """It cannot be done. `code`: as of a shell, 126 or 127."""

    def __init__(self, text, code=1):
        self.code = code
        super().__init__(text)


def free(count):
    """Ports in ascending order that nobody listens on, nor claims; so they are claimed
    by who is to use them, perhaps on another host. Raises `OSError` without so many."""
    found = set()
    for _ in range(TRIES + 10 * count):
        port = random.SystemRandom().randint(FIRST, LAST)
        with suppress(Refused):
            claim(port).close()
            found.add(port)
        if len(found) == count:
            return sorted(found)
    raise OSError(f"no {count} free ports between {FIRST} and {LAST}")


def claim(port):
    """Keep other agents off `port`, while the socket returned is open.

    It has a name in Linux's abstract namespace, for which there is no file and which
    goes with its process; the port itself can't be held, as ps-lite must bind it.
    Raises `Refused` when it is claimed, or no process could listen on it.
    """
    own = socket.socket(socket.AF_UNIX)
    with suppress(OSError):
        own.bind(f"\0pslaunch:{port}")
        if not _is_in_use(port):
            return own
    own.close()
    raise Refused(f"port {port} is taken", TAKEN)


def is_listening(port):
    """Whether a process of this machine listens on `port`, on whatever address; with
    `DMLC_LOCAL=1` on the file that stands for it."""
    return _is_in_use(port) or Path(LOCAL, str(port)).is_socket()


def _is_in_use(port):
    """Whether nobody could listen there now. To ask takes microseconds, and keeps off
    nobody who asks to reuse an address, as ps-lite does."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return True
    return False


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
                          ) from None
