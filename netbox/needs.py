"""Whether a cluster in a box can be had here."""

import os
import shutil
import sys

from .machine import Machine

#: Commands, and Debian's packages that bring them.
COMMANDS = {
    "ip": "iproute2", "tc": "iproute2", "iptables": "iptables",
    "nsenter": "util-linux", "ssh": "openssh-client", "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
}  # fmt: skip


def find(command):
    """The path of a command, also of one that is for administrators; or None."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    return shutil.which(command, path=path)


def why_not():
    """None where a box can be had, else one sentence that says what is in the way."""
    if not sys.platform.startswith("linux"):
        return f"A cluster in a box needs Linux; this is {sys.platform}."
    missing = {name: pack for name, pack in COMMANDS.items() if not find(name)}
    if missing:
        packages = sorted(set(missing.values()))
        them = "them" if packages[1:] else "it"
        return (f"A cluster in a box needs {', '.join(missing)}: install Debian's "
                f"{', '.join(packages)}, or what corresponds to {them}.")  # fmt: skip
    try:
        _try()
    except OSError as error:
        who = "root" if os.geteuid() == 0 else "this user"
        return f"A cluster in a box needs namespaces, and {who} gets none: {error}."
    return None


def _try():
    """Make a machine with an interface, and end it."""
    machine = Machine("probe", True if os.geteuid() else None, binds=())
    try:
        machine.wait()
        machine.ip("link add br0 type bridge", "link set lo up")
    finally:
        if not machine.holder.stdin.closed:
            machine.end()
