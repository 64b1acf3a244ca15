"""Starts the processes of a job on this machine, and ends them with their launcher.

    launcher === socket === watchdog ---- the processes, and what they start

Run as a program, before any process of the job: `watchdog.py JOB CANCEL [PATH …]`. Its
standard input is a socket whose other end the launcher holds, and no signal can keep
the system from closing that. Then it ends the job and, when the launcher did not say
`well` before, runs CANCEL, a list of words in JSON that may be empty, and removes files
and folders. When it is killed itself, the system ends the processes, and the launcher
the job.

What a process leaves behind becomes a child of the watchdog, whatever it has done to
its variables, its group and its session: Linux calls that a subreaper. It imports the
standard library alone, so that it starts in a moment.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

if __package__:
    from . import processes
else:  # run as a program
    sys.path.append(os.path.dirname(__file__))
    import processes

GREETING = b"d2l_ext agent\n"  # as an agent's
LOOK = 1.0  # seconds from one look for stopped processes to the next, at least


class Watchdog:
    """Serves the launcher at the other end of standard input."""

    def __init__(self):
        self.inbox, self.well = b"", False
        self.nodes = {}  # id to (number, `Popen`)
        self.halted = {}  # number to the id of what was stopped

    def tell(self, **message):
        os.write(0, json.dumps(message).encode() + b"\n")

    def serve(self):
        """Until the launcher is gone, or says that all went well."""
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        os.write(0, GREETING)
        parent, due = os.getppid(), 0.0
        while os.getppid() == parent and not self.well:
            ready, _, _ = select.select([0, woken], [], [], LOOK)
            if woken in ready:
                os.read(woken, 4096)
            if 0 in ready and not self._receive():
                return
            self._take_ended()
            now = time.monotonic()
            if now > due and self.nodes:
                self._look_for_halted()
                due = now + max(LOOK, 50 * (time.monotonic() - now))

    def _receive(self):
        new = os.read(0, 65536)
        *lines, self.inbox = (self.inbox + new).split(b"\n")
        for line in lines:
            message = json.loads(line)
            getattr(self, "do_" + message.pop("do"))(**message)
        return new

    def do_well(self):
        self.well = True

    def do_start(self, number, command, env, folder, log):
        try:
            with open(log, "ab") as file:
                process = processes.popen(command, env=env, cwd=folder, stdout=file)
        except OSError as error:
            text = f"{error.filename or command[0]}: {error.strerror}"
            self.tell(**{"is": "error", "number": number, "text": text})
        else:
            self.nodes[process.pid] = number, process
            self.tell(**{"is": "begun", "number": number, "pid": process.pid})

    def _take_ended(self):
        for pid, code in processes.reap():
            if pid in self.nodes:
                number, process = self.nodes.pop(pid)
                process.returncode = code
                with contextlib.suppress(OSError):  # there is nobody in its group
                    os.killpg(pid, signal.SIGKILL)
                self.tell(**{"is": "ended", "number": number, "code": code})

    def _look_for_halted(self):
        rows = processes.table()
        for pid, (number, _) in self.nodes.items():
            found = processes.halted(pid, rows)
            if found != self.halted.get(number):
                self.halted[number] = found
                self.tell(**{"is": "halted", "number": number, "pid": found})


def main(job, words, *paths):
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signum) != signal.SIG_IGN:  # which processes would inherit
            signal.signal(signum, lambda *_: None)
    processes.adopt()
    watchdog = Watchdog()
    with contextlib.suppress(OSError):  # the launcher is gone
        watchdog.serve()
    processes.end(job, under=os.getpid())
    if not watchdog.well:
        cancel(json.loads(words))
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)


def cancel(words, seconds=20):
    """Run the words that cancel a job of a scheduler's, whatever comes of it."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        if words:
            subprocess.run(words, check=False, stdin=subprocess.DEVNULL,
                           timeout=seconds, capture_output=True)  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
