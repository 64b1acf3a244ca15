"""The remote end of a job: one process of it, at the far end of a channel.

    launcher === channel === agent ---- the process, and what it starts

What to run, its variables and its folder come by the channel, never on a command line,
and all that it prints goes back there. The agent ends everything that it started when
the channel ends, when nothing was heard for `SILENCE` seconds (a lost connection does
not tell), on SIGTERM, and when its own parent is gone.

What the process leaves behind becomes a child of the agent, as of the watchdog here.
It tells when the process, or one that it has started, was stopped by a signal.

Standard library alone: this file, `channel.py`, `ports.py` and `processes.py` are sent
to hosts that have Python and nothing else.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

from . import ports, processes
from .ports import Refused
from .processes import GREETING

BEAT, SILENCE = 2.0, 10.0  # seconds
GRACE = 1.0  # between SIGTERM and SIGKILL
FULL = 1 << 20  # bytes that wait to be sent; then the process has to wait


class Agent:
    """Serves the launcher at the other end of `link`, a `channel.Channel`. `about`:
    what a door has to be told first."""

    def __init__(self, link, **about):
        self.link, link.greeted = link, True
        self.child = self.pipe = self.port = self.code = self.mark = None
        self.parent, self.stopped, self.grace = os.getppid(), False, GRACE
        self.halted, self.look = None, 0.0  # what a signal stopped; when to look again
        self.beaten = time.monotonic()
        link.send(GREETING)
        if about:
            self.tell("come", **about)

    def tell(self, what, payload=b"", **more):
        self.link.send(payload, **{"is": what}, **more)

    def loop(self):
        """Serve until there is a reason to end."""
        while not self.stopped and os.getppid() == self.parent:
            self._move(0.1)
            now = time.monotonic()
            if now - self.link.heard > SILENCE:
                return
            if now - self.beaten > BEAT:
                self.beaten = now
                self.tell("beat")
            if self.port and ports.is_listening(self.port):
                self.port = None
                self.tell("listening")
            for pid, code in processes.reap():
                if self.child and pid == self.child.pid:
                    self.child.returncode = code
            if self.child and self.code is None:
                self._look_after_it(now)
            if self.code is not None and not self.link.outbox:
                return  # all was said, however long that took

    def _look_after_it(self, now):
        if self.child.returncode is not None:
            self._finish()
        elif now > self.look:
            halted = processes.halted(self.child.pid, processes.table())
            self.look = now + max(BEAT, 50 * (time.monotonic() - now))
            if halted != self.halted:
                self.halted = halted
                self.tell("halted", pid=halted)

    def _finish(self):
        """End the process and all that it has started; tell how it ended."""
        processes.end(self.mark, self.grace, under=os.getpid())
        self.child.wait()
        list(processes.reap())
        self._take_output()
        self.code = self.child.returncode
        self.tell("ended", code=self.code)

    def _move(self, seconds):
        """Let bytes go whichever way they can, and do what the launcher says."""
        link = self.link
        pipes = [self.pipe] if self.pipe and len(link.outbox) < FULL else []
        sends = [link.write] if link.outbox else []
        ready, _, _ = select.select([link.read, *pipes], sends, [], seconds)
        for message, _ in link.pump():
            try:
                getattr(self, "do_" + message.pop("do"))(**message)
            except Refused as error:
                self.tell("error", text=str(error), code=error.code)
        self.stopped = self.stopped or link.ended
        if self.pipe in ready:
            self._take_output(once=True)

    def do_beat(self):
        pass

    def do_end(self, grace):
        self.stopped, self.grace = True, grace

    def do_hello(self, root, interface=None, make_folder=None):
        if make_folder:
            try:
                os.makedirs(make_folder, exist_ok=True)
            except OSError as error:
                raise Refused(f"cannot make {make_folder}: {error.strerror}") from None
        self.tell("here", address=ports.address(root, interface))

    def do_start(self, command, env, folder, port):
        """Start the process; a `null` in place of its program is this Python."""
        if not os.path.isdir(folder):
            raise Refused(f"there is no folder {folder}", 126)
        self.claim, self.port = ports.claim(port), port
        self.mark = env[processes.MARK]
        command = [sys.executable if word is None else word for word in command]
        here = {name: value for name, value in os.environ.items()
                if not name.startswith(("DMLC_", "PS_"))}  # fmt: skip
        here["PATH"] = f"{os.path.dirname(sys.executable)}:" + here.get("PATH", "")
        os.environ["PATH"] = env.get("PATH", here["PATH"])  # where it is looked for
        try:
            self.child = processes.popen(command, env={**here, **env}, cwd=folder,
                                         stdout=subprocess.PIPE)  # fmt: skip
        except OSError as error:
            code = 127 if isinstance(error, FileNotFoundError) else 126
            raise Refused(f"{command[0]}: {error.strerror}", code) from None
        self.pipe = self.child.stdout.fileno()
        os.set_blocking(self.pipe, False)

    def _take_output(self, once=False):
        with contextlib.suppress(BlockingIOError):
            while self.pipe:
                text = os.read(self.pipe, 65536)
                if text:
                    self.tell("output", text, size=len(text))
                else:
                    self.pipe = None
                if once:
                    return

    def end(self):
        """End the process, and try to send what is left to say."""
        if self.child and self.code is None:
            self._finish()
        until = time.monotonic() + 5
        while self.link.outbox and time.monotonic() < until:
            select.select([], [self.link.write], [], 0.1)
            self.link.pump()


def serve(link, **about):
    """Serve a channel to its end; return the exit code of the process."""
    agent = Agent(link, **about)
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
    return 1 if agent.code is None else agent.code if agent.code >= 0 else (
        128 - agent.code)  # fmt: skip
