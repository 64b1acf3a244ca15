"""Processes that a cell starts without a launcher; none is left running."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from pslaunch import processes
from pslaunch.temporary import Folder

#: Runs before the code of each process: the system then ends the process after some
#: seconds, even inside a call that does not return, and even without its parent.
ALARM = "import signal; signal.alarm({seconds})\n"


class Processes:
    """Named Python processes; leaving the `with` ends those that still run.

        with Processes(seconds=30) as processes:
            processes.start("scheduler", "import mxnet", DMLC_ROLE="scheduler", ...)
            processes.wait_for_output("scheduler", "Bind to")

    `seconds`: the time limit of each process, and of each wait; a whole number, 30 by
    default.
    Developed in the chapter *Roles, keys and shards*.
    """

    def __init__(self, seconds=30):
        self.seconds = seconds
        self.started = {}  # name to Popen
        self._folder = Folder("d2l_ext-by-hand-")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in self.started.values():
            process.kill()
        for process in self.started.values():
            process.wait()
        self._folder.cleanup()

    def start(self, name, code, *args, **variables):
        """Run the Python `code`, with `args` and more environment variables.

        Returns at once. Variables of another job are not passed on. Raises `ValueError`
        for the name of a process that still runs.
        """
        if name in self.running():
            raise ValueError(f"{name!r} still runs: give this process another name")
        inherited = os.environ.items()
        env = {k: v for k, v in inherited if not k.startswith(("DMLC_", "PS_"))}
        command = [sys.executable, "-c", ALARM.format(seconds=self.seconds) + code]
        with open(self._log(name), "wb") as log:
            self.started[name] = subprocess.Popen(
                [*command, *args], env={**env, **variables, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )

    def output(self, name):
        """Return the output of a process so far, with standard error."""
        return self._log(name).read_text(errors="replace")

    def codes(self):
        """Return the exit code of each process, by name; None while it runs."""
        return {name: process.poll() for name, process in self.started.items()}

    def running(self):
        """Return the names of the running processes, in the order of their start."""
        return [name for name, code in self.codes().items() if code is None]

    def wait_for(self, condition):
        """Wait until `condition()` is true; False if that takes too long."""
        until = time.monotonic() + self.seconds
        while not condition():
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        return True

    def wait_for_output(self, name, text):
        """Wait until the process has printed `text`; False if that takes too long."""
        return self.wait_for(lambda: text in self.output(name))

    def _log(self, name):
        return Path(self._folder.name) / name


def marked(variable, value):
    """Return the processes of this machine with `variable=value` in their environment.

    Returns a dict from process id to its `DMLC_ROLE`, or None. This process is
    excluded, and so are those of other users, unless this user is root.
    """
    found = {pid: processes.environ(pid) for pid in processes.ids()}
    return {pid: env.get("DMLC_ROLE") for pid, env in found.items()
            if env.get(variable) == value and pid != os.getpid()}


def kill(ids, seconds=10):
    """Kill the processes `ids`; return those that still exist after `seconds`."""
    for pid in ids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + seconds
    while True:
        left = [pid for pid in ids if processes.state(pid) not in ("", "Z")]
        if not left or time.monotonic() >= until:
            return left
        time.sleep(0.05)
