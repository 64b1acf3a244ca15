"""A cluster in a box: hosts on a switch, all on this machine."""

import fcntl
import os
import pwd
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from . import keys
from .host import Host
from .machine import Namespaces, find, why_not

PREFIX = "netbox-"


class Cluster:
    """Hosts and a `head` on a network of their own, for use in a `with`.

        with netbox.Cluster(hosts=3) as cluster:
            cluster.head.run(["ssh", "h2", "hostname"])

    `hosts`: their number, 1 to 50, default 3; as an attribute a list of `Host`, h1, h2,
    … `head`: a `Host` that launches jobs; it is not in `hosts_file`, nor in `hosts`.
    `second_interface`: whether each has an eth1 on a second network.
    `ssh_config`, `known_hosts`, `hosts_file`, `key`: paths that all hosts see. All
    hosts share the file system, except `/run`, `/proc` and `Host.private`.

    The box has no connection to the outside, where only its processes and `folder` are
    visible. It ends with the process that made it and with the children that it has
    forked, even if they are killed.

    Raises `ValueError` for another number of hosts, and `OSError`, with the reason, if
    this system allows no box.
    """

    def __init__(self, hosts=3, second_interface=False):
        if hosts not in range(1, 51):
            raise ValueError(f"hosts={hosts!r}: give a whole number from 1 to 50")
        reason = why_not()
        if reason:
            raise OSError(reason)
        self.second_interface = second_interface
        self.sshd = find("sshd")
        self.user_namespace = os.geteuid() != 0
        # In a user namespace the caller is root to the network, and itself to sshd.
        self.outer_user = (os.getuid(), os.getgid()) if self.user_namespace else None
        self.port = 2222 if self.user_namespace else 22
        self.user = pwd.getpwuid(os.getuid()).pw_name
        name = f"{PREFIX}{os.urandom(8).hex()}"
        self.folder = Path(tempfile.gettempdir(), name).resolve()
        self.switch = self.lock = None
        self.head = Host(self, "head", 1)
        self.hosts = [Host(self, f"h{i + 1}", 11 + i) for i in range(int(hosts))]
        self.ssh_config = str(self.folder / "ssh_config")
        self.known_hosts = str(self.folder / "known_hosts")
        self.hosts_file = str(self.folder / "hosts")
        self.key = str(self.folder / "id_ed25519")

    @property
    def inner_user(self):
        """The machine whose user namespace the hosts join, or None."""
        return self.switch if self.user_namespace else None

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error):
        self.close()

    def _start(self):
        everybody = [self.head, *self.hosts]
        # The switch's holder removes the folder, so it must know it beforehand.
        self.switch = Namespaces("switch", self.user_namespace or None,
                                 folder=self.folder)
        self.folder.mkdir(0o700)
        self.lock = os.open(self.folder / "lock", os.O_CREAT | os.O_WRONLY)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        (self.folder / "private").mkdir()
        for host in everybody:
            host.disk.mkdir(parents=True)
        # In a user namespace root owns nothing, not even the folder "/".
        keys.write(self.folder, everybody, self.user, self.port,
                   strict=not self.user_namespace)
        at = "" if self.port == 22 else f":{self.port}"
        lines = [f"{host.name}{at}\n" for host in self.hosts]
        Path(self.hosts_file).write_text("".join(lines))
        (self.folder / "shadow").write_text(f"{self.user}:*:19000:0:99999:7:::\n")
        self.switch.wait()
        for number in range(1 + self.second_interface):
            self.switch.ip(f"link add br{number} type bridge",
                           f"link set br{number} up")
        for host in everybody:
            host.power_on(wait=False)  # all at once
        for host in everybody:
            host.power_on()

    def __getitem__(self, name):
        """Return the host `name`."""
        for host in (self.head, *self.hosts):
            if host.name == name:
                return host
        raise KeyError(f"no host {name!r}: there is head, and h1 to h{len(self.hosts)}")

    def close(self):
        """Switch everything off, and remove the folder."""
        for host in (self.head, *self.hosts):
            with suppress(OSError):
                host.power_off()
        if self.switch:
            self.switch.end()
            self.switch = None
            shutil.rmtree(self.folder, ignore_errors=True)  # if its holder was killed
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None


def boxes():
    """Return the folders of this user's running boxes, of any process."""
    return [folder for folder in _folders() if _is_held(folder)]


def _folders():
    for path in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
        with suppress(FileNotFoundError):  # its box has just ended
            if path.stat().st_uid == os.getuid():
                yield path


def _is_held(folder):
    try:
        lock = os.open(folder / "lock", os.O_WRONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False
