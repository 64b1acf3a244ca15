"""One host of a cluster in a box."""

import os
import pwd
import shlex
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from . import keys, links
from .machine import Namespaces

#: Seconds for a host to accept connections after it is switched on.
BOOT = 120


class Host:
    """A host that a `Cluster` makes.

    `name`: such as 'h1'. `address`, `second_address`: of eth0 and eth1; the second is
    None without a second network. `private`: the path of a folder with different
    contents on each host; `disk`: the path where the caller sees this one's.
    """

    def __init__(self, cluster, name, place):
        self.cluster, self.name, self.place = cluster, name, place
        self.address = f"{links.SUBNETS[0]}.{place}"
        self.second_address = (
            f"{links.SUBNETS[1]}.{place}" if cluster.second_interface else None
        )
        self.private = str(cluster.folder / "private")
        self.disk = cluster.folder / name / "disk"
        self.machine = self.sshd = None
        self.losses = {}  # by the number of the interface

    def power_on(self, wait=True):
        """Switch the host on, unless it is on. Raises `OSError`; the host is then off.

        `wait`: whether to wait until it accepts connections; a second call does that.
        """
        if self.sshd:
            return
        if self.machine is None:
            own = self.cluster.folder / self.name
            self.machine = Namespaces(
                self.name, self.cluster.inner_user, self._binds(own))
        if wait:
            try:
                self._start()
            except BaseException:
                self.power_off()
                raise

    def _start(self):
        self.machine.wait()
        for number in range(1 + bool(self.second_address)):
            links.plug(self.cluster.switch, self.machine, number, self.place)
        for other in self._others():
            other._lose([self.machine])
        self._start_sshd()
        self._wait_for_sshd()

    def _binds(self, own):
        """Return files this host sees in place of the caller's: (source, target)."""
        shared = self.cluster.folder
        # No password, but not locked, as accounts without a password may be.
        binds = [(self.disk, self.private), (shared / "etc_hosts", "/etc/hosts"),
                 (shared / "shadow", "/etc/shadow")]
        if Path("/etc/ssh/ssh_config").exists():  # so that `ssh h2` works
            binds.append((shared / "ssh_config", "/etc/ssh/ssh_config"))
        # Skip the start-up files of the caller's shells: some take a second or more.
        home = Path(pwd.getpwuid(os.getuid()).pw_dir)
        starts = (home / name for name in (".bashrc", ".zshenv"))
        return binds + [("/dev/null", file) for file in starts if file.is_file()]

    def _start_sshd(self):
        own, sshd = self.cluster.folder / self.name, self.cluster.sshd
        names = ("ssh_host_key", "sshd_config", "authorized_keys")
        copies = [["install", "-m", "600", str(own / name), keys.OWN] for name in names]
        lines = [["mkdir", "-m", "755", keys.OWN], *copies,
                 ["exec", sshd, "-D", "-e", "-f", f"{keys.OWN}/sshd_config"]]
        script = " && ".join(map(shlex.join, lines))
        with open(own / "sshd.log", "wb") as log:
            self.sshd = self.popen(["sh", "-c", script], stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, env={"PATH": os.defpath},
                                   cwd="/")

    def _wait_for_sshd(self):
        end = time.monotonic() + BOOT
        wanted = 1 + bool(self.second_address)
        while self._listeners() < wanted:
            if time.monotonic() > end or self.sshd.poll() is not None:
                log = (self.cluster.folder / self.name / "sshd.log").read_text()
                raise OSError(f"sshd of {self.name} did not start: {log.strip()}")
            time.sleep(0.01)

    def _listeners(self):
        rows = Path(f"/proc/{self.machine.pid}/net/tcp").read_text().splitlines()[1:]
        port = f":{self.cluster.port:04X}"
        return sum(row.split()[3] == "0A" and row.split()[1].endswith(port)
                   for row in rows)

    def power_off(self):
        """Switch the host off at once, unless it is off. Its cables are cut first, so
        other hosts get no message. The contents of its `disk` stay.
        """
        if self.machine is None:
            return
        if self.machine.pid:
            with suppress(OSError):  # the link, or the switch, may be gone
                self.cut()
        self.machine.end()
        if self.sshd:
            self.sshd.wait()
        if self.machine.pid:
            self._link(links.unplug)
        self.losses = dict.fromkeys(self.losses, 0)
        try:
            self._lose([other.machine for other in self._others()])
        finally:
            self.machine, self.sshd, self.losses = None, None, {}

    def cut(self):
        """Pull the cables: no packet leaves or reaches the host. Its processes run.

        Raises `OSError` if the host is off.
        """
        self._on()
        self._link(links.cut)

    def mend(self):
        """Plug the cables in again. Raises `OSError` if the host is off."""
        self._on()
        self._link(links.mend)

    def _link(self, change):
        for number in range(1 + bool(self.second_address)):
            change(self.cluster.switch, self.name, number)

    def _on(self):
        """Return the machine of the host. Raises `OSError` if the host is off."""
        if self.machine is None:
            raise OSError(f"{self.name} is switched off")
        if self.machine.pid is None:
            raise OSError(f"{self.name} is not on yet: call power_on()")
        return self.machine

    def popen(self, command, as_user=True, **options):
        """Start a command on this host; its signals go through the returned `Popen`.

        `as_user`: as the caller; False: in a user namespace as its root. `options`: as
        for `subprocess.Popen`. Raises `OSError` if the host is off.
        """
        user = self.cluster.outer_user if as_user else None
        return subprocess.Popen(self._on().command(command, user), **options)

    def run(self, command, input=None, timeout=None, check=False, **options):
        """Run a command on this host; return its `CompletedProcess`, with its output as
        text. `input`, `timeout`, `check`: as for `subprocess.run`; `options`: as for
        `popen`. Raises `OSError` if the host is off.
        """
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True,
                 "stdin": subprocess.DEVNULL if input is None else subprocess.PIPE}
        with self.popen(command, **{**pipes, **options}) as process:
            try:
                out, err = process.communicate(input, timeout)
            except BaseException:
                process.kill()
                raise
        done = subprocess.CompletedProcess(command, process.returncode, out, err)
        return done if not check else done.check_returncode() or done

    def processes(self):
        """Return the ids of the processes here, as the caller sees them, without
        process 1 and the listening sshd; none if the host is off, or not on yet.
        """
        if self.sshd is None:
            return []
        own = _children(self.sshd.pid)
        return [pid for pid in self.machine.processes() if pid not in own]

    def shape(self, rate=None, delay=None, loss=0.0, interface="eth0"):
        """Shape a link, as `links.shape` does; without values, undo that.

        Raises `OSError` if the host is off, `ValueError` for an unknown interface, and
        what `links.shape` raises.
        """
        names = ["eth0", "eth1"][: 1 + bool(self.second_address)]
        if interface not in names:
            raise ValueError(f"there is no interface {interface!r} to shape: choose "
                             f"{' or '.join(names)}")
        number, others = int(interface[-1]), [host.machine for host in self._others()]
        links.shape(self.cluster.switch, self._on(), others, number, rate, delay, loss)
        self.losses[number] = loss or 0

    def _others(self):
        """Return the other hosts that are on."""
        everybody = (self.cluster.head, *self.cluster.hosts)
        return [host for host in everybody if host is not self and host.sshd]

    def _lose(self, machines):
        """Make other machines drop packets of this one, at the rates of its links."""
        for number, loss in self.losses.items():
            source = (self.address, self.second_address)[number]
            links.lose(machines, self.name, number, source, loss)

    def bytes(self, interface="eth0"):
        """Return an interface's bytes (sent, received) since the host's switch-on.

        Raises `OSError` if the host is off, `ValueError` for an unknown interface.
        """
        return links.byte_counters(self._on().pid, interface)


def _children(pid):
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
