"""What an agent finds out about the host that it is on. Standard library alone."""

import contextlib
import fcntl
import socket
import struct

SIOCGIFADDR = 0x8915


class Refused(Exception):
    """It cannot be done. `code`: as of a shell, 126 or 127."""

    def __init__(self, text, code=1):
        self.code = code
        super().__init__(text)


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


def claim(port):
    """Keep others of this kind off `port`, while the socket returned is open."""
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own = socket.socket(socket.AF_UNIX)
        try:
            probe.bind(("", port))
            own.bind(f"\0pslaunch:{port}")  # as in ports.py
        except OSError:
            own.close()
            raise Refused(f"port {port} is taken", 98) from None
        return own


def is_listening(port):
    """Whether somebody listens on `port`, of IPv4, in this network."""
    with open("/proc/net/tcp") as table:
        rows = [row.split() for row in table][1:]
    return any(r[3] == "0A" and r[1].endswith(f":{port:04X}") for r in rows)
