"""What a job can lose: a process on this machine, or a whole host of a box."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from pslaunch import processes

LAUNCH = [sys.executable, "-m", "pslaunch"]


class Local:
    """Jobs on this machine, which lose processes; `signum`: by this signal."""

    def __init__(self, signum=signal.SIGKILL):
        self.signum = signum

    def popen(self, words, **options):
        """Start the launcher with these words."""
        self.launcher = subprocess.Popen([*LAUNCH, *words], **options)
        return self.launcher

    def there(self):
        """What could be lost now: a dict from names, as 'worker 0', to process ids."""
        nearest_last = reversed(processes.tree(self.launcher.pid))
        return {name: pid for pid in nearest_last for name in [_name(pid)] if name}

    def lose(self, name):
        """Send a process the signal; whether it was there."""
        try:
            os.kill(self.there()[name], self.signum)
        except (KeyError, ProcessLookupError):  # it has ended
            return False
        return True

    def repair(self):
        """Nothing of this machine stays broken."""


class Hosts:
    """Jobs over ssh on the hosts of a box, `cluster`, which lose hosts."""

    def __init__(self, cluster):
        self.cluster, self.off = cluster, []

    def popen(self, words, **options):
        """Start the launcher, with ssh, on the head."""
        where = ["--launcher", "ssh", "-H", self.cluster.hosts_file]
        return self.cluster.head.popen([*LAUNCH, *where, *words], **options)

    def there(self):
        """The hosts that are on."""
        return {host.name: host for host in self.cluster.hosts if host not in self.off}

    def lose(self, name):
        """Switch a host off: nothing of it says a last word."""
        self.off.append(self.cluster[name])
        self.off[-1].power_off()
        return True

    def repair(self):
        """Switch all hosts on again."""
        while self.off:
            self.off.pop().power_on()


def _name(pid):
    """As 'worker 0': what a process of a job is; None for any other."""
    try:
        env = dict(v.split(b"=", 1) for v in
                   Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if b"=" in v)
    except OSError:
        return None
    role = env.get(b"DMLC_ROLE", b"").decode()
    rank = env.get(f"DMLC_{role.upper()}_ID".encode(), b"0").decode()
    return f"{role} {rank}" if role else None
