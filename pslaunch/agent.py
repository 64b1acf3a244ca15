"""The agent: starts the processes of a job on one host, watches them, and ends them.

    launcher === channel === agent ---- the processes, and their children

On the launcher's host the agent is called the watchdog; it starts before any process of
the job, and writes their output to files. An agent on another host runs one process,
and sends its output back. Commands, variables and folders travel through the channel,
never on a command line.

Orphaned descendants of a process become children of the agent, whatever they have done
to their variables, group or session: the agent is a subreaper. It ends them all when
the channel closes, which the system does even for a launcher that is killed, and when
its own parent is gone; on another host also on SIGTERM, and after `SILENCE` seconds
without a message, because a lost connection may not close. If the agent is killed
itself, the system ends the processes, and the launcher ends the job.

A job of mpi, Slurm, Grid Engine or YARN runs one copy of this file for each process:
`python -m pslaunch.agent VARIABLE [FILE]`. Each copy connects to the launcher's door.
`VARIABLE` is where the scheduler stores the copy's number. The invitation (address,
port and secret) is in the variable `D2L_EXT_DOOR`, or in FILE, which only its owner can
read; it is never on a command line.

This file needs only the standard library: with `channel.py` and `processes.py` it is
sent to hosts that have Python and nothing else.
"""

import contextlib
import json
import math
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from . import processes
from .channel import BEAT, DOOR, GREETING, SILENCE, Channel, dial
from .processes import Refused

GRACE = 1.0  # between SIGTERM and SIGKILL
LOOK = 1.0  # seconds between two looks for stopped processes, at least
FULL = 1 << 20  # unsent bytes at which the output of processes is no longer read


class Agent:
    """Serves the launcher at the other end of `link`, a `channel.Channel`.

    `silence`: seconds without a message after which the launcher counts as gone.
    """

    def __init__(self, link, silence):
        self.link, link.greeted, self.silence = link, True, silence
        self.running = {}  # id to (number, `Popen`)
        self.ports, self.claims = {}, []  # number to the port where it will listen
        self.halted = {}  # number to the id of the stopped process
        self.mark, self.is_over = None, False  # of a process whose output is sent
        self.parent, self.stopped, self.grace = os.getppid(), False, GRACE
        self.well = False
        self.beaten, self.due = time.monotonic(), 0.0
        self.woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        link.send(GREETING)

    def tell(self, what, payload=b"", **more):
        self.link.send(payload, **{"is": what}, **more)

    def loop(self):
        """Serve until told to end, the launcher is silent or gone, or all is over."""
        while not self.stopped and os.getppid() == self.parent:
            self._move(0.03 if self.ports else LOOK)
            now = time.monotonic()
            if now - self.link.heard > self.silence:
                return
            if now - self.beaten > BEAT:
                self.beaten = now
                self.tell("beat")
            for number, port in list(self.ports.items()):
                if processes.is_listening(port):
                    del self.ports[number]
                    self.tell("listening", number=number)
            self._take_ended()
            if self.running and now > self.due:
                self._look_for_halted()
                self.due = now + max(LOOK, 50 * (time.monotonic() - now))
            if self.is_over and not self.link.outbox:
                return  # everything has been sent

    def _move(self, seconds):
        """Send and receive for at most `seconds`; obey the launcher's messages."""
        link, pipes = self.link, {}
        if len(link.outbox) < FULL:
            pipes = {process.stdout: number for number, process in self.running.values()
                     if process.stdout and not process.stdout.closed}
        sends = [link.write] if link.outbox else []
        ready, _, _ = select.select([link.read, self.woken, *pipes], sends, [], seconds)
        if self.woken in ready:
            os.read(self.woken, 4096)
        for message, _ in link.pump():
            try:
                getattr(self, "do_" + message.pop("do"))(**message)
            except Refused as error:
                number = message.get("number")
                self.tell("error", number=number, text=str(error), code=error.code)
        self.stopped = self.stopped or link.ended
        for pipe in pipes.keys() & {*ready}:
            self._take_output(pipes[pipe], pipe, once=True)

    def do_beat(self):
        pass

    def do_well(self):
        """Note that the launcher has finished, so nothing needs to be cancelled."""
        self.well = self.stopped = True

    def do_end(self, grace):
        self.stopped, self.grace = True, grace

    def do_hello(self, root, interface=None, make_folder=None):
        if make_folder:
            try:
                os.makedirs(make_folder, exist_ok=True)
            except OSError as error:
                raise Refused(f"cannot make {make_folder}: {error.strerror}") from None
        self.tell("here", address=processes.own_address(root, interface))

    def do_start(self, number, command, env, folder, own, log=None):
        """Start a process; `null` in `command` stands for this Python.

        `own`: ports to claim; the agent reports when the first one is listened on.
        `log`: the path for the output; without it, the output is sent.
        """
        if not os.path.isdir(folder):
            raise Refused(f"no such folder: {folder}", 126)
        self.claims += map(processes.claim_port, own)
        self.ports[number] = own[0]
        command = [sys.executable if word is None else word for word in command]
        here = {name: value for name, value in os.environ.items()
                if not name.startswith(("DMLC_", "PS_"))}
        here["PATH"] = f"{os.path.dirname(sys.executable)}:" + here.get("PATH", "")
        try:
            with open(log, "ab") if log else contextlib.nullcontext() as file:
                process = processes.popen(command, env={**here, **env}, cwd=folder,
                                          stdout=file or subprocess.PIPE)
        except OSError as error:
            code = 127 if isinstance(error, FileNotFoundError) else 126
            text = f"{error.filename or command[0]}: {error.strerror}"
            raise Refused(text, code) from None
        self.running[process.pid] = number, process
        if not log:
            self.mark = env[processes.MARK]
            os.set_blocking(process.stdout.fileno(), False)
        self.tell("begun", number=number, pid=process.pid)

    def _take_ended(self):
        for pid, code in processes.reap():
            if pid in self.running:
                self.running[pid][1].returncode = code
                self._finish(*self.running[pid])

    def _finish(self, number, process):
        """End its descendants (here, only its group); report its exit code."""
        if process.stdout:
            processes.end(self.mark, self.grace, under=os.getpid())
            process.wait()
            self._take_output(number, process.stdout)
            self.is_over = True
        else:
            with contextlib.suppress(OSError):  # the group is empty
                os.killpg(process.pid, signal.SIGKILL)
        self.ports.pop(number, None)
        del self.running[process.pid]
        self.tell("ended", number=number, code=process.returncode)

    def _take_output(self, number, pipe, once=False):
        with contextlib.suppress(BlockingIOError):
            while not pipe.closed:
                text = os.read(pipe.fileno(), 65536)
                if text:
                    self.tell("output", text, number=number, size=len(text))
                else:
                    pipe.close()
                if once:
                    return

    def _look_for_halted(self):
        rows = processes.table()
        for pid, (number, _) in self.running.items():
            found = processes.halted(pid, rows)
            if found != self.halted.get(number):
                self.halted[number] = found
                self.tell("halted", number=number, pid=found)

    def end(self):
        """End the processes, and try to send what is unsent."""
        for number, process in list(self.running.values()):
            self._finish(number, process)
        until = time.monotonic() + 5
        while self.link.outbox and time.monotonic() < until:
            select.select([], [self.link.write], [], 0.1)
            self.link.pump()


def serve(link, **about):
    """Serve a channel on another host until it ends. `about`: sent to a door first."""
    agent = Agent(link, SILENCE)
    if about:
        agent.tell("come", **about)
    processes.adopt()

    def stop(*_):
        agent.stopped = True

    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, stop)
    try:
        agent.loop()
    finally:
        agent.end()
    if agent.link.forged:
        print(f"agent: {agent.link.forged}", file=sys.stderr, flush=True)


def watch(job, words, *paths):
    """Be the watchdog of the launcher at the other end of standard input.

    `job`: the mark of its processes. If the launcher is gone without having said
    `well`, run `words`, a JSON list that may be empty and that cancels a scheduler's
    job, and remove the folders `paths`.
    """
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signum) != signal.SIG_IGN:  # which processes would inherit
            signal.signal(signum, lambda *_: None)
    processes.adopt()
    agent = Agent(Channel(0, 0), math.inf)
    agent.loop()
    processes.end(job, under=os.getpid())
    if not agent.well:
        processes.cancel(json.loads(words))
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)


def main(variable, file=None):
    """Serve as an agent that a scheduler has started; return the exit code.

    That is 0 even if the process failed, which the launcher knows: otherwise the
    scheduler would end the other copies. It is 1 if the launcher cannot be reached.
    """
    try:
        invitation = Path(file).read_text() if file else os.environ.pop(DOOR)
        number, link = int(os.environ.get(variable, "-1")), dial(invitation.strip())
    except (OSError, KeyError, ValueError) as error:
        # Never the invitation itself: this line goes to a log.
        print(f"agent: cannot reach the launcher: {error}", file=sys.stderr, flush=True)
        return 1
    serve(link, number=number, host=socket.gethostname() or "?")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
