"""The agents of one start of a job, and the processes that they run.

A launcher is a subclass of `Crew`. It says how agents come to be, in `open`, `look` and
`close`, and what it makes of a plan before. All the rest is the same, and here.
"""

import os
import subprocess
import tempfile
import threading
import time
from contextlib import suppress

from . import hosts, processes
from .agent import BEAT, SILENCE
from .job import LOST, Failed, NotReady, Process
from .ports import TAKEN


class Crew:
    """`plan`: a `plan.Plan`. `job`: the mark of this start. `say`: called with a line
    of the launcher's own. `root`: the address of the scheduler.
    """

    def __init__(self, plan, job, root, say):
        self.plan, self.job, self.root, self.say = plan, job, root, say
        self.channels = []
        self.placed = {}  # (role, rank) to channel, once all agents are here
        self.over = threading.Event()
        self.beats = threading.Thread(target=self._beat, daemon=True)
        self.wanted = plan.nodes[1:]  # all but the scheduler

    # ---- What a launcher says of a plan ----

    @classmethod
    def check(cls, plan):
        """Raise `ValueError` when it can't be done: no such tool, flags of another."""

    #: The address where the scheduler of a plan, and the door, listen, and none else.
    scheduler_address = staticmethod(hosts.scheduler_address)

    @classmethod
    def describe(cls, plan):
        """What would be started or submitted, for `--dry-run`: a list of lines."""

    @staticmethod
    def cancel(plan, job):
        """The words that cancel what `open` has submitted, known before it does."""
        return []

    @staticmethod
    def files(job):
        """Paths that `open` may make, to be removed if the launcher is killed."""
        return []

    # ---- What it does ----

    def open(self):
        """Start agents, or what starts them; `add` a channel for each. It returns at
        once: agents may also come later, in `look`."""

    def look(self):
        """Notice new agents, and why there will be none: raise `Failed`."""

    def close(self):
        """Release what `open` took; within seconds, even if a host is gone."""

    def lost(self, channel):
        """An agent is gone before it was `here`."""
        raise Failed(f"{channel.host} cannot be used: {self.reason(channel)}", LOST)

    def reason(self, channel):
        """Why a channel ended, in one line."""

    # ---- What is the same for all ----

    def add(self, channel, folder=None):
        """Greet a new agent. `folder`: one that it makes unless it is there."""
        self.channels.append(channel)
        channel.send(do="hello", root=self.root, interface=self.plan.settings.interface,
                     make_folder=folder)  # fmt: skip

    def gathered(self):
        """Whether all agents are here; each has its (role, rank) then."""
        if not self.beats.ident:
            self.beats.start()
            self.open()
        self.pump()
        here = [channel for channel in self.channels if channel.address]
        if not self.placed and len(here) == len(self.wanted):
            self._place(here)
        return bool(self.placed)

    def _beat(self):
        """Let agents know that the launcher is there, also when it is held up: it has
        to wait, for example, while nobody reads what it prints."""
        while not self.over.wait(BEAT):
            for channel in list(self.channels):
                channel.send(do="beat")

    def _place(self, here):
        """Number the agents of each role as ps-lite will number their nodes.

        It sorts them by address, descending and as text, then by port. The ports of
        a job ascend with the rank.
        """
        free = [channel for channel in here if not channel.role]
        for role in ("server", "worker"):
            ranks = [node for node in self.wanted if node[0] == role]
            own = [channel for channel in here if channel.role == role]
            while len(own) < len(ranks):
                own.append(free.pop(0))
            own.sort(key=lambda channel: channel.address, reverse=True)
            self.placed.update(zip(ranks, own))

    def start(self, node, command, env, port, log):
        """Let an agent start the process of `node`; a `Member`."""
        channel = self.placed[node]
        channel.member = Member(log)
        folder = self.plan.settings.sync_dst_dir or os.getcwd()
        env = {**env, processes.MARK: f"{self.job}.{node[0]}-{node[1]}"}
        channel.send(do="start", command=command, env=env, port=port, folder=folder)
        return channel.member

    def pump(self):
        """Take what agents have sent; raise `Failed` when one could not begin."""
        self.look()
        for channel in list(self.channels):
            self._pump(channel)

    def _pump(self, channel):
        for message, payload in channel.pump():
            self._heed(channel, message.pop("is"), payload, **message)
        silent = time.monotonic() - channel.heard > SILENCE
        if channel.ended or (silent and channel.greeted):
            self._note_end(channel, silent)

    def _note_end(self, channel, silent):
        if not channel.address:
            self.channels.remove(channel)
            try:
                if not self.over.is_set():
                    self.lost(channel)
            finally:
                channel.close()
        elif channel.member:
            what = f"not heard of for {SILENCE:g} s" if silent else self.reason(channel)
            channel.member.set(LOST, what)
        else:
            raise Failed(f"{channel.host} was lost: {self.reason(channel)}", LOST)

    def _heed(self, channel, kind, payload, **said):
        if kind == "here":
            channel.address = said["address"]
        elif kind == "output":
            channel.member.write(payload)
        elif kind == "listening":
            channel.member.listening = True
        elif kind == "halted":
            channel.member.halted = said["pid"]
        elif kind == "ended":
            channel.member.set(said["code"])
        elif kind == "error":
            text = f"{channel.host}: {said['text']}"
            raise NotReady(text) if said["code"] == TAKEN else Failed(text,
                said["code"])  # fmt: skip

    def joined(self):
        """The nodes that listen on their ports."""
        return {node for node, channel in self.placed.items()
                if channel.member and channel.member.listening}  # fmt: skip

    def end(self, grace):
        """End all processes; afterwards none runs, on whatever host can be reached."""
        self.over.set()
        for channel in self.channels:
            channel.send(do="end", grace=grace)
        until = time.monotonic() + grace + 6
        try:
            while time.monotonic() < until and not all(c.ended for c in self.channels):
                for channel in list(self.channels):  # whatever another has to say
                    with suppress(Failed, NotReady):
                        self._pump(channel)
                time.sleep(0.02)
        finally:
            for channel in self.channels:
                channel.close()
                if channel.member:
                    channel.member.close()
            self.close()


class Program(subprocess.Popen):
    """A program on this host by which others are reached: ssh, rsync, srun, …

    `job`: the mark of this start, by which the watchdog ends it too. `env`: more
    variables. `options`: as of a `Popen`. What it prints is kept in `file`, without
    `stdout` in `options` all of it.
    """

    def __init__(self, words, job, env=None, **options):
        self.file = tempfile.TemporaryFile()  # noqa: SIM115, it goes with this
        super().__init__(
            words, **{"stdout": self.file, **options}, stderr=self.file,
            start_new_session=True,
            env={**os.environ, processes.MARK: job, **(env or {})},
        )  # fmt: skip

    def printed(self):
        """All that it has printed up to now."""
        number = self.file.fileno()
        text = os.pread(number, os.fstat(number).st_size, 0)
        return text.decode("utf-8", errors="replace")

    def ends(self, seconds):
        """Whether it has ended, within so many seconds."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(seconds)
        return self.returncode is not None

    def end(self, seconds=0.0):
        """End it, if it has not done so itself within so many seconds."""
        if not self.ends(seconds):
            self.kill()
            self.wait()


class Member(Process):
    """A process at the other end of a channel to an agent."""

    def __init__(self, log):
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self.listening = False

    def write(self, text):
        """Append to its log what it has printed."""
        while text:
            text = text[os.write(self.log, text) :]

    def close(self):
        """Nothing more is heard of it; it is lost, if it was not seen to end."""
        self.set(LOST, "not heard of at the end")
        os.close(self.log)
