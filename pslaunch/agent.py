"""What starts the processes of a job on one host, watches them, and ends them.

    launcher === channel === agent ---- the processes, and what they start

On this host it is called the watchdog, is started before any process of the job, and
writes what they print to files. At the far end of a channel it runs one process, and
all that this prints goes back there. What to run, its variables and its folder come by
the channel, never on a command line.

What a process leaves behind becomes a child of the agent, whatever it has done to its
variables, its group and its session: Linux calls that a subreaper. The agent ends all
of it when the channel ends, which no signal can keep the system from closing, and when
its own parent is gone; elsewhere also on SIGTERM, and when nothing was heard for
`SILENCE` seconds (a lost connection does not tell). When it is killed itself, the
system ends the processes, and the launcher the job.

Standard library alone: this file, `channel.py`, `ports.py` and `processes.py` are sent
to hosts that have Python and nothing else.
"""

import contextlib
import json
import math
import os
import select
import shutil
import signal
import subprocess
import sys
import time

from . import ports, processes
from .channel import GREETING, Channel
from .ports import Refused

BEAT, SILENCE = 2.0, 10.0  # seconds
GRACE = 1.0  # between SIGTERM and SIGKILL
LOOK = 1.0  # seconds from one look for stopped processes to the next, at least
FULL = 1 << 20  # bytes that wait to be sent; then a process has to wait


class Agent:
    """Serves the launcher at the other end of `link`, a `channel.Channel`.

    `silence`: after so many seconds without a word it is taken for gone.
    """

    def __init__(self, link, silence):
        self.link, link.greeted, self.silence = link, True, silence
        self.running = {}  # id to (number, `Popen`)
        self.ports, self.claims = {}, []  # number to port, until it listens there
        self.halted = {}  # number to the id of what a signal has stopped
        self.mark, self.is_over = None, False  # of a process whose output goes back
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
        """Serve until there is a reason to end."""
        while not self.stopped and os.getppid() == self.parent:
            self._move(0.03 if self.ports else LOOK)
            now = time.monotonic()
            if now - self.link.heard > self.silence:
                return
            if now - self.beaten > BEAT:
                self.beaten = now
                self.tell("beat")
            for number, port in list(self.ports.items()):
                if ports.is_listening(port):
                    del self.ports[number]
                    self.tell("listening", number=number)
            self._take_ended()
            if self.running and now > self.due:
                self._look_for_halted()
                self.due = now + max(LOOK, 50 * (time.monotonic() - now))
            if self.is_over and not self.link.outbox:
                return  # all was said, however long that took

    def _move(self, seconds):
        """Let bytes go whichever way they can, and do what the launcher says."""
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
        """The launcher leaves, and nothing is to be cancelled."""
        self.well = self.stopped = True

    def do_end(self, grace):
        self.stopped, self.grace = True, grace

    def do_hello(self, root, interface=None, make_folder=None):
        if make_folder:
            try:
                os.makedirs(make_folder, exist_ok=True)
            except OSError as error:
                raise Refused(f"cannot make {make_folder}: {error.strerror}") from None
        self.tell("here", address=ports.address(root, interface))

    def do_start(self, number, command, env, folder, own, log=None):
        """Start a process; a `null` in place of its program is this Python.

        `own`: ports that others are kept off; that it listens on the first is told.
        `log`: the path for all that it prints, which is else sent.
        """
        if not os.path.isdir(folder):
            raise Refused(f"there is no folder {folder}", 126)
        self.claims += map(ports.claim, own)
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
        """End what it has started, here only its group; tell how it ended."""
        if process.stdout:
            processes.end(self.mark, self.grace, under=os.getpid())
            process.wait()
            self._take_output(number, process.stdout)
            self.is_over = True
        else:
            with contextlib.suppress(OSError):  # there is nobody in it
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
        """End the process, and try to send what is left to say."""
        for number, process in list(self.running.values()):
            self._finish(number, process)
        until = time.monotonic() + 5
        while self.link.outbox and time.monotonic() < until:
            select.select([], [self.link.write], [], 0.1)
            self.link.pump()


def serve(link, **about):
    """Serve a channel to its end, elsewhere. `about`: what a door is told first."""
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

    `job`: the mark of all that belongs to it. When the launcher has not said `well`
    before it is gone, `words` are run, a list in JSON that may be empty, which cancel a
    job of a scheduler's, and files and folders at `paths` removed.
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
