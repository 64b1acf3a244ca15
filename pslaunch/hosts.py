"""The hosts file: which computers a job may use, who goes where, and at which of its
addresses this computer can be reached by them."""

import os
import re
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .environment import LOOPBACK
from .job import LOST, Failed
from .ports import Refused, address

_LINE = re.compile(
    r"(?:(?P<user>[A-Za-z_][\w.-]*)@)?"
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?:\s+slots\s*=\s*(?P<slots>[1-9][0-9]{0,5}))?"
)


@dataclass(frozen=True)
class Host:
    """`name`: a host name or an IPv4 address. `port`, `user`: of ssh, None as ssh is
    configured. `slots`: how many processes it should get at most; None: any number.
    """

    name: str
    port: int = None
    user: str = None
    slots: int = None

    def __str__(self):
        user = f"{self.user}@" if self.user else ""
        return f"{user}{self.name}" + (f":{self.port}" if self.port else "")


def read(source):
    """The hosts of a file, a list of `Host`; `--help` shows such a file.

    `source`: the path, or a list of lines. Raises `ValueError` for a line that is no
    host, a host that is there twice, and a file without any; `OSError` when the file
    cannot be read.
    """
    if isinstance(source, (str, os.PathLike)):
        where = source
        try:
            lines = Path(source).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise ValueError(f"{where} is no hosts file, a text in UTF-8: {error}"
                             ) from None
    else:
        lines, where = [str(line) for line in source], "hosts"
    found = {}
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text:
            host = _host(text, f"{where}, line {number}")
            if host.name in found:
                raise ValueError(f"{where}, line {number}: {host.name} is there twice, "
                                 f"first in line {found[host.name][0]}")
            found[host.name] = number, host
    if not found:
        raise ValueError(f"{where}: there is no host in it")
    return [host for _, host in found.values()]


def _host(text, where):
    match = _LINE.fullmatch(text)
    if not match:
        raise ValueError(f"{where}: {text!r} is no host: write NAME, NAME:PORT or "
                         "USER@NAME, and perhaps slots=N")
    user, name, port, slots = match.groups()
    if port and not 0 < int(port) < 65536:
        raise ValueError(f"{where}: {text!r}: there is no port {port}")
    return Host(name, int(port) if port else None, user, int(slots) if slots else None)


def place(hosts, num_servers, num_workers):
    """[(role, host)]: servers first, then workers, in turn over `hosts`.

    With 5 hosts, 3 servers and 3 workers: servers on 1, 2, 3, workers on 4, 5, 1.
    The rule of MXNet's `launch.py`.
    """
    roles = ["server"] * num_servers + ["worker"] * num_workers
    return [(role, hosts[i % len(hosts)]) for i, role in enumerate(roles)]


def scheduler_address(plan):
    """The IPv4 address where the scheduler of `plan` listens, and none else.

    That of the interface, where one is named; else, with hosts, the one from which the
    first is reached that is not this computer; else that of this computer's name, or
    from which others are reached. Raises `Failed`.
    """
    settings = plan.settings
    try:
        if settings.interface:
            return address(None, settings.interface)
        if settings.hosts:
            own = [address(_resolve(settings, host)) for host in settings.hosts]
            return next((one for one in own if not one.startswith("127.")), LOOPBACK)
        with suppress(OSError):
            own = socket.gethostbyname(socket.gethostname())
            if not own.startswith("127."):
                return own
        return address("192.0.2.1")  # no host has this address
    except Refused as error:
        raise Failed(f"here: {error}; name an interface that the hosts of the job can "
                     "reach") from None


def configured(settings, host):
    """How ssh is configured for `host`: a dict of texts, by names in small letters."""
    words = ["ssh", *(["-F", settings.ssh_config] if settings.ssh_config else [])]
    done = subprocess.run([*words, "-G", host.name], check=False, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def _resolve(settings, host):
    """The address of `host`, whose name may be one of ssh's configuration alone."""
    name = configured(settings, host).get("hostname", host.name)
    try:
        return socket.getaddrinfo(name, None, socket.AF_INET)[0][4][0]
    except OSError as error:
        raise Failed(f"{host} cannot be used: no such name, {name}: "
                     f"{error.strerror}", LOST) from None
