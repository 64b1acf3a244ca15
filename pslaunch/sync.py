"""The working directory, copied to every host by rsync."""

import os
import re
import shlex
import subprocess
import time

from . import processes, ssh
from .failures import Failed

#: What a host should have of its own, or need not have.
LEFT_OUT = (".git", ".venv", "__pycache__")


def command(where, host):
    """The words of the rsync to `host`. No shell reads the name of the folder."""
    target = f"{host.user}@{host.name}" if host.user else host.name
    shell = shlex.join(ssh.client(where, host))
    return ["rsync", "--archive", "--compress", "--secluded-args", "--stats",
            *(f"--exclude={name}" for name in LEFT_OUT), f"--rsh={shell}", "--",
            "./", f"{target}:{where.sync_dst_dir.rstrip('/')}/"]  # fmt: skip


class Copies:
    """Copies to several `hosts` at a time. `job`: the mark; `say`: for a line."""

    def __init__(self, where, hosts, job, say):
        self.where, self.say, self.begin = where, say, time.monotonic()
        self.running = {}
        for host in sorted(hosts, key=str):
            try:
                self.running[host] = subprocess.Popen(
                    command(where, host), stdin=subprocess.DEVNULL, text=True,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    start_new_session=True, env={**os.environ, processes.MARK: job,
                                                 "LC_ALL": "C"},
                )  # fmt: skip
            except OSError as error:
                raise Failed(f"rsync: {error.strerror}; install it, here and on the "
                             "hosts") from None  # fmt: skip

    def done(self):
        """Whether all have ended well. Raises `Failed` when one has not."""
        for host, process in list(self.running.items()):
            if process.poll() is not None:
                del self.running[host]
                said = process.communicate()[0]
                if process.returncode:
                    raise Failed(f"{host}: the folder could not be copied: "
                                 f"{' '.join(said.split())}", 1)  # fmt: skip
                self.say(f"copied {os.getcwd()} to {host}:{self.where.sync_dst_dir}, "
                         f"{_count(said)}, without {', '.join(LEFT_OUT)}")
        return not self.running

    def end(self):
        """End those that still run."""
        for process in self.running.values():
            process.kill()
            process.communicate()


def _count(stats):
    """'3 files of 5 were new, 1,234 bytes', from what rsync says."""
    def number(pattern):
        found = re.search(pattern, stats)
        return found[1] if found else "?"

    return (f"{number(r'files transferred: ([0-9,]*[0-9])')} files of "
            f"{number(r'Number of files: [0-9,]+ .reg: ([0-9,]*[0-9])')} were new or "
            f"changed, {number(r'Total transferred file size: ([0-9,]*[0-9])')} bytes")
