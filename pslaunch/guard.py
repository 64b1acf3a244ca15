"""The launcher's end of its watchdog, `watchdog.py`, which starts the processes here.

It is the parent of them all, so that none can leave it, whatever becomes of the
launcher. What becomes of the watchdog is seen to here: one that was stopped is
continued, and the job of one that has ended fails.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

from . import failures, processes, watchdog
from .channel import Channel
from .failures import Failed
from .member import Process


class Guard:
    """Starts the watchdog of the job with this mark; leaving the `with` ends it.

    `cancel`, `paths`: what it runs and removes, should the launcher be killed. `say`:
    called with a line of the launcher's own.
    """

    def __init__(self, job, cancel, paths, say):
        ours, theirs = socket.socketpair()
        words = [job, json.dumps(cancel), *map(str, paths)]
        utf8 = f"utf8={sys.flags.utf8_mode}"  # texts are the same bytes there
        with ours, theirs:
            self.watchdog = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", utf8, watchdog.__file__, *words],
                stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True, cwd="/",
            )  # fmt: skip
            fd = ours.detach()
        self.channel, self.started = Channel(fd, fd, "here"), []
        self.job, self.say, self.was_stopped = job, say, False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        """Let it go; it looks once more whether anything is left."""
        self.channel.send(do="well")
        self.channel.close()
        self.watchdog.send_signal(signal.SIGCONT)
        try:
            self.watchdog.wait(20)
        except subprocess.TimeoutExpired:
            self.watchdog.kill()
            self.watchdog.wait()

    @property
    def parent(self):
        """The process from which all descend. When the watchdog has ended, that is
        this one, if it was made so because it runs nothing but the job; else None.
        """
        if self.watchdog.poll() is None:
            return self.watchdog.pid
        return os.getpid() if processes.adopts() else None

    def start(self, command, env, log):
        """Let it start a process, and return it without waiting.

        `command`: a list of strings, given to the system as it is: no shell reads it.
        `env`: all variables. `log`: the path for all that it prints. It has a session
        of its own, hence a process group: Ctrl-C in a terminal reaches the launcher
        alone, which ends the others. Raises `OSError` when there can be no log.
        """
        open(log, "wb").close()
        self.channel.send(do="start", number=len(self.started), command=command,
                          env=env, folder=os.getcwd(), log=str(log))  # fmt: skip
        self.started.append(Process())
        return self.started[-1]

    def pump(self):
        """Take what it says. Raises `Failed` when a process cannot be started."""
        for message, _ in self.channel.pump():
            process = self.started[message["number"]]
            if message["is"] == "begun":
                process.pid = message["pid"]
            elif message["is"] == "halted":
                process.halted = message["pid"]
            elif message["is"] == "ended":
                process.set(message["code"])
            else:
                raise Failed(f"the command cannot be started: {message['text']}", 126)

    def check(self):
        """Continue a watchdog that was stopped. Raises `Failed` when it has ended."""
        if self.watchdog.poll() is not None or self.channel.ended:
            code = self.watchdog.wait()
            raise Failed(f"the watchdog {failures.how(code)}, and its job with it",
                         failures.code_of(code) or 1)  # fmt: skip
        if processes.state(self.watchdog.pid) == "T":
            if not self.was_stopped:
                self.say(f"the watchdog, process {self.watchdog.pid}, was stopped, and "
                         "goes on")
            self.was_stopped = True
            self.watchdog.send_signal(signal.SIGCONT)

    def end(self, grace, seconds=5.0):
        """End all that runs, until the watchdog has told so of every process."""
        processes.end(self.job, grace, under=self.parent)
        until = time.monotonic() + seconds
        while not self._is_over() and time.monotonic() < until:
            if self.watchdog.poll() is not None:
                break
            with suppress(Failed):
                self.check()
                self.pump()
            processes.end(self.job, grace=0, under=self.parent)  # begun late
        for process in self.started:
            process.set(-signal.SIGKILL)

    def _is_over(self):
        return all(process.poll() is not None for process in self.started)
