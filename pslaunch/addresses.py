"""At which of its addresses this computer can be reached by the hosts of a job."""

import re
import socket
import subprocess

from .environment import LOOPBACK
from .failures import LOST, Failed
from .nearby import Refused, address


def of_scheduler(plan):
    """The IPv4 address where the scheduler of `plan` listens, and none else.

    That of the interface, where one is named, else the one from which the first host
    is reached that is not this computer. Raises `failures.Failed`.
    """
    try:
        if plan.where.interface:
            return address(None, plan.where.interface)
        own = [address(_resolve(plan.where, host)) for host in plan.where.hosts or ()]
    except Refused as error:
        raise Failed(f"here: {error}") from None
    return next((one for one in own if not one.startswith("127.")), LOOPBACK)


def _resolve(where, host):
    """The address of `host`, whose name may be one of ssh's configuration alone."""
    words = ["ssh", *(["-F", where.ssh_config] if where.ssh_config else [])]
    done = subprocess.run([*words, "-G", host.name], check=False, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL)  # fmt: skip
    name = re.search(r"(?m)^hostname (\S+)", done.stdout)
    name = name[1] if name else host.name
    try:
        return socket.getaddrinfo(name, None, socket.AF_INET)[0][4][0]
    except OSError as error:
        raise Failed(f"{host} cannot be used: no such name, {name}: "
                     f"{error.strerror}", LOST) from None  # fmt: skip
