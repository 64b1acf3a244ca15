"""The agents of one start of a job, and the processes that they run.

On this host there is one, the watchdog, of which `Guard` is the launcher's end.

A launcher is a subclass of `Crew`. It says how agents come to be, in `open`, `look` and
`close`, and what it makes of a plan before. All the rest is the same, and here.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from . import environment, hosts, processes
from .agent import BEAT, SILENCE
from .channel import Channel
from .job import LOST, Failed, NotReady, Process, how
from .ports import TAKEN


class Crew:
    """`plan`: a `plan.Plan`. `job`: the mark of this start. `say`: called with a line
    of the launcher's own. `root`: the address of the scheduler. `guard`: a `Guard`.
    """

    def __init__(self, plan, job, root, say, guard):
        self.plan, self.job, self.root, self.say = plan, job, root, say
        self.guard, self.channels = guard, []  # of this host, and of others
        self.placed = {}  # (role, rank) to channel of another, once all agents are here
        self.members, self.errors = {}, []  # (role, rank) to `Member`
        self.over, self.is_open = threading.Event(), False
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
                     make_folder=folder)

    def gathered(self):
        """Whether all agents are here; each has its (role, rank) then."""
        if not self.is_open:
            self.is_open = True
            threading.Thread(target=self._beat, daemon=True).start()
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
            for node, channel in zip(ranks, own):
                self.placed[node], channel.node = channel, node

    def start(self, node, command, env, own, log):
        """Let an agent start the process of `node`, and return it without waiting.

        `command`: a list of strings, given to the system as it is: no shell reads it;
        None is the agent's Python. `env`: all variables that are not the agent's own.
        `own`: its ports, of which it will listen on the first. `log`: the path for all
        that it prints.

        It has a session of its own, hence a process group: Ctrl-C in a terminal reaches
        the launcher alone, which ends the others. Raises `OSError` when there can be no
        log.
        """
        self.members[node] = Member(log)
        request = {"number": self.plan.nodes.index(node), "command": command,
                   "env": env, "folder": os.getcwd(), "own": own}
        if node not in self.placed:
            self.guard.channel.send(do="start", **request, log=str(log))
        else:
            env[processes.MARK] = f"{self.job}.{node[0]}-{node[1]}"
            request["folder"] = self.plan.settings.sync_dst_dir or request["folder"]
            self.placed[node].send(do="start", **request)
        return self.members[node]

    def pump(self):
        """Take what agents have sent; raise `Failed` when one could not begin."""
        self.look()
        for channel in list(self.channels):
            self._pump(channel)
        self._hear(self.guard.channel)

    def _pump(self, channel):
        self._hear(channel)
        silent = time.monotonic() - channel.heard > SILENCE
        if channel.ended or (silent and channel.greeted):
            self._note_end(channel, silent)

    def _note_end(self, channel, silent):
        member = self.members.get(channel.node)
        if not channel.address:
            self.channels.remove(channel)
            try:
                if not self.over.is_set():
                    self.lost(channel)
            finally:
                channel.close()
        elif member:
            silence = f"not heard from for {SILENCE:g} s"
            what = silence if silent else self.reason(channel)
            member.set(LOST, what)
        else:
            raise Failed(f"{channel.host} was lost: {self.reason(channel)}", LOST)

    def _hear(self, channel):
        for message, payload in channel.pump():
            self._heed(channel, message.pop("is"), payload, **message)
        if self.errors:
            raise self.errors.pop(0)

    def _heed(self, channel, kind, payload, number=None, **said):
        member = None if number is None else self.members[self.plan.nodes[number]]
        if kind == "here":
            channel.address = said["address"]
        elif kind == "begun":
            member.pid = said["pid"]
        elif kind == "output":
            member.log.write(payload)
        elif kind == "listening":
            member.listening = True
        elif kind == "halted":
            member.halted = said["pid"]
        elif kind == "ended":
            member.set(said["code"])
        elif kind == "error":
            if member:
                member.set(said["code"])
            text = f"{channel.host}: {said['text']}"
            self.errors.append(NotReady(text) if said["code"] == TAKEN
                               else Failed(text, said["code"]))

    def joined(self):
        """The nodes that have opened the store: each listens on its port."""
        return {node for node, member in self.members.items() if member.listening}

    def end(self, grace):
        """End all processes; afterwards none runs, on whatever host can be reached."""
        try:
            self._end_elsewhere(grace)
            self._end_here(grace)
        finally:  # an interrupt came: no more grace
            self._end_here(0)
            for member in self.members.values():
                member.close()

    def _end_elsewhere(self, grace):
        self.over.set()
        for channel in self.channels:
            channel.send(do="end", grace=grace)
        until = time.monotonic() + grace + 6
        try:
            while time.monotonic() < until and not all(c.ended for c in self.channels):
                for channel in list(self.channels):  # whatever another has to say
                    with suppress(Failed):
                        self._pump(channel)
                time.sleep(0.02)
        finally:
            for channel in self.channels:
                channel.close()
            self.close()

    def _end_here(self, grace):
        """End all that runs, until the watchdog has told so of every process."""
        guard, until = self.guard, time.monotonic() + 5
        processes.end(self.job, grace, under=guard.parent)
        while self._here() and guard.runs and time.monotonic() < until:
            with suppress(Failed):
                guard.check()
                self._hear(guard.channel)
            processes.end(self.job, grace=0, under=guard.parent)  # begun late
        for member in self._here():
            if member.pid:
                with suppress(OSError):  # there is nobody in its group
                    os.killpg(member.pid, signal.SIGKILL)
            member.set(-signal.SIGKILL)

    def _here(self):
        """The processes of this host that run."""
        return [member for node, member in self.members.items()
                if node not in self.placed and member.returncode is None]


class Member(Process):
    """A process that an agent runs; `log`: the path of what it prints, emptied now."""

    def __init__(self, log):
        self.log = open(log, "wb", buffering=0)  # noqa: SIM115, closed at the end

    def close(self):
        """Nothing more is heard from it; it is lost, if it was not seen to end."""
        self.set(LOST, "not heard from at the end")
        self.log.close()


#: The watchdog begins in a moment: it looks for no package but this one.
WATCH = ("import sys; sys.path.insert(0, sys.argv.pop(1));"
         "from pslaunch.agent import watch; watch(*sys.argv[1:])")


class Guard:
    """Starts the watchdog of the job with this mark; leaving the `with` ends it.

    `cancel`, `paths`: what it runs and removes, should the launcher be killed. `say`:
    called with a line of the launcher's own.
    """

    def __init__(self, job, cancel, paths, say):
        ours, theirs = socket.socketpair()
        words = [str(Path(__file__).parents[1]), job, json.dumps(cancel), *paths]
        utf8 = f"utf8={sys.flags.utf8_mode}"  # texts are the same bytes there
        with ours, theirs:
            self.watchdog = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", utf8, "-c", WATCH, *words],
                stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True, cwd="/", env=environment.inherited(),
            )
            fd = ours.detach()
        self.channel = Channel(fd, fd, "here")
        self.say, self.was_stopped = say, False

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
    def runs(self):
        """Whether it has not ended."""
        return self.watchdog.poll() is None

    @property
    def parent(self):
        """The process from which all descend. When the watchdog has ended, that is
        this one, if it was made so because it runs nothing but the job; else None.
        """
        if self.runs:
            return self.watchdog.pid
        return os.getpid() if processes.adopts() else None

    def check(self):
        """Continue a watchdog that was stopped. Raises `Failed` when it has ended."""
        if not self.runs or self.channel.ended:
            code = self.watchdog.wait()
            raise Failed(f"the watchdog {how(code)}, and its job with it", code or 1)
        if processes.state(self.watchdog.pid) == "T":
            if not self.was_stopped:
                self.say(f"the watchdog, process {self.watchdog.pid}, was stopped, and "
                         "goes on")
            self.was_stopped = True
            self.watchdog.send_signal(signal.SIGCONT)


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
        )

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
