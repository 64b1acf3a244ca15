"""The agents of one start of a job, and the processes that they run.

The agent on this host is the watchdog; `Guard` is the launcher's end of its channel.

Each launcher is a subclass of `Crew`. It defines how its agents start, in `open`,
`look` and `close`, and checks and describes a plan. `Local` needs no other agents:
every node is a process on this machine that listens on 127.0.0.1.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from . import processes
from .channel import BEAT, SILENCE, Channel
from .job import LOST, NO_COMMAND, Failed, NotReady, Process, how, name_of
from .processes import LOOPBACK, TAKEN


class Crew:
    """The agents of one start.

    `plan`: a `plan.JobPlan`. `job`: the mark of this start. `root`: the scheduler's
    address. `say`: a function that prints a line of the launcher's. `guard`: a `Guard`.
    """

    def __init__(self, plan, job, root, say, guard):
        self.plan, self.job, self.root, self.say = plan, job, root, say
        self.guard, self.channels = guard, []  # of this host, and of others
        self.placed = {}  # (role, rank) to channel, elsewhere, once all are here
        self.members, self.errors = {}, []  # (role, rank) to `Member`
        self.over, self.is_open = threading.Event(), False
        self.wanted = plan.nodes[1:]  # all but the scheduler

    # ---- What each launcher defines, before a start ----

    @classmethod
    def check(cls, plan):
        """Raise `ValueError` if this launcher cannot run `plan`."""

    @staticmethod
    def scheduler_address(plan):
        """Return the one address on which the scheduler and the door listen."""

    @classmethod
    def describe(cls, plan):
        """Return the lines of `--dry-run`: what would be started or submitted."""

    @staticmethod
    def cancel(plan, job):
        """Return the command that cancels what `open` submits; known before `open`."""
        return []

    @staticmethod
    def files(job):
        """Return folders that `open` may create; removed if the launcher is killed."""
        return []

    # ---- What each launcher defines, during a start ----

    def open(self):
        """Start the agents, or the program that starts them; `add` their channels.

        Returns at once: agents may also arrive later, in `look`.
        """

    def look(self):
        """Greet arrived agents by `add`; raise `Failed` if they cannot arrive."""

    def close(self):
        """Release what `open` acquired, within seconds, even if a host is gone."""

    def lost(self, channel):
        """Handle an agent that ended before it reported `here`."""
        raise Failed(f"{channel.host} cannot be used: {self.reason(channel)}", LOST)

    def reason(self, channel):
        """Return why a channel ended, in one line."""

    # ---- Common to all launchers ----

    def add(self, channel, folder=None):
        """Greet a new agent. `folder`: created there if it does not exist."""
        self.channels.append(channel)
        channel.send(do="hello", root=self.root, interface=self.plan.settings.interface,
                     make_folder=folder)

    def gathered(self):
        """Return whether all agents have arrived; if so, each has its (role, rank)."""
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
        """Send heartbeats from a thread, because the launcher may block, for example
        while nothing reads its output."""
        while not self.over.wait(BEAT):
            for channel in list(self.channels):
                channel.send(do="beat")

    def _place(self, here):
        """Number the agents of each role as ps-lite will number their nodes.

        ps-lite sorts nodes by address, as text and descending, then by port. The ports
        of a job ascend with the rank.
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
        """Tell an agent to start the process of `node`; return it without waiting.

        `command`: a list of strings that no shell reads; None stands for the agent's
        Python. `env`: its variables, besides the agent's own. `own`: its ports; it will
        listen on the first. `log`: the path for its output.

        The process leads a session of its own, so Ctrl-C in a terminal reaches only the
        launcher, which ends the processes. Raises `OSError` if the log cannot be
        written.
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
        """Receive messages; raise `Failed` if an agent could not start a process."""
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
            self._note_error(channel, member, **said)

    def _note_error(self, channel, member, text, code):
        if member:
            member.set(code)
        text = f"{channel.host}: {text}"
        self.errors.append(NotReady(text) if code == TAKEN else Failed(text, code))

    def joined(self):
        """Return the nodes that have opened the store and listen on their ports."""
        return {node for node, member in self.members.items() if member.listening}

    def end(self, grace):
        """End all processes, on every host that can be reached."""
        try:
            self._end_elsewhere(grace)
            self._end_here(grace)
        finally:  # also after an interrupt, then without grace
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
                for channel in list(self.channels):  # even if another raises
                    with suppress(Failed):
                        self._pump(channel)
                time.sleep(0.02)
        finally:
            for channel in self.channels:
                channel.close()
            self.close()

    def _end_here(self, grace):
        """End the processes of this host, until the watchdog has reported all ended."""
        guard, until = self.guard, time.monotonic() + 5
        processes.end(self.job, grace, under=guard.parent)
        while self._here() and guard.runs and time.monotonic() < until:
            with suppress(Failed):
                guard.check()
                self._hear(guard.channel)
            processes.end(self.job, grace=0, under=guard.parent)  # begun late
        for member in self._here():
            if member.pid:
                with suppress(OSError):  # its group is empty
                    os.killpg(member.pid, signal.SIGKILL)
            member.set(-signal.SIGKILL)

    def _here(self):
        """Return the processes of this host that still run."""
        return [member for node, member in self.members.items()
                if node not in self.placed and member.returncode is None]


class Member(Process):
    """A process that an agent runs. `log`: the path for its output, emptied now."""

    def __init__(self, log):
        with open(log, "wb"):
            pass
        self.log = open(log, "ab", buffering=0)  # noqa: SIM115, closed at the end

    def close(self):
        """Stop listening: a process that was not seen to end counts as lost."""
        self.set(LOST, "not heard from at the end")
        self.log.close()


#: Starts the watchdog quickly: it imports no other package.
WATCH = ("import sys; sys.path.insert(0, sys.argv.pop(1));"
         "from pslaunch.agent import watch; watch(*sys.argv[1:])")


class Guard:
    """Starts the watchdog of the job with the mark `job`; leaving the `with` ends it.

    `cancel`, `paths`: the command it runs and the folders it removes if the launcher is
    killed. `env`: its variables. `say`: a function that prints a line.
    """

    def __init__(self, job, cancel, paths, env, say):
        ours, theirs = socket.socketpair()
        words = [str(Path(__file__).parents[1]), job, json.dumps(cancel), *paths]
        utf8 = f"utf8={sys.flags.utf8_mode}"  # texts are the same bytes there
        with ours, theirs:
            self.watchdog = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", utf8, "-c", WATCH, *words],
                stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True, cwd="/", env=env,
            )
            fd = ours.detach()
        self.channel = Channel(fd, fd, "here")
        self.say, self.was_stopped = say, False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        """Let the watchdog end; it first ends processes that are left."""
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
        """Whether the watchdog still runs."""
        return self.watchdog.poll() is None

    @property
    def parent(self):
        """The id of the process from which the job's processes descend.

        Once the watchdog has ended, that is this process, if it is a subreaper because
        it runs nothing but the job; else None.
        """
        if self.runs:
            return self.watchdog.pid
        return os.getpid() if processes.adopts() else None

    def check(self):
        """Continue a stopped watchdog. Raises `Failed` if the watchdog has ended."""
        if not self.runs or self.channel.ended:
            code = self.watchdog.wait()
            raise Failed(f"the watchdog {how(code)}, and its job with it", code or 1)
        if processes.state(self.watchdog.pid) == "T":
            if not self.was_stopped:
                self.say(f"the watchdog (process {self.watchdog.pid}) was stopped; it "
                         "is continued")
            self.was_stopped = True
            self.watchdog.send_signal(signal.SIGCONT)


class Program(subprocess.Popen):
    """A program on this host that reaches others: ssh, rsync, srun, …

    `job`: the mark of this start, by which the watchdog finds it. `env`: further
    variables. `options`: as for `Popen`. Its standard error, and its standard output
    unless `options` has `stdout`, is kept in `file`.
    """

    def __init__(self, words, job, env=None, **options):
        self.file = tempfile.TemporaryFile()  # noqa: SIM115, it goes with this
        super().__init__(
            words, **{"stdout": self.file, **options}, stderr=self.file,
            start_new_session=True,
            env={**os.environ, processes.MARK: job, **(env or {})},
        )

    def printed(self):
        """Return its output so far."""
        number = self.file.fileno()
        text = os.pread(number, os.fstat(number).st_size, 0)
        return text.decode("utf-8", errors="replace")

    def ends(self, seconds):
        """Return whether it ends within `seconds`."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(seconds)
        return self.returncode is not None

    def end(self, seconds=0.0):
        """Kill it unless it ends by itself within `seconds`."""
        if not self.ends(seconds):
            self.kill()
            self.wait()


class Local(Crew):
    """Every node is a process of the watchdog, on this machine."""

    @classmethod
    def check(cls, plan):
        for name in ("hosts", "interface", "sync_dst_dir", "ssh_config", "submit_args"):
            if getattr(plan.settings, name):
                raise ValueError(f"{name}: the launcher local uses this machine "
                                 "only: choose another launcher")

    @classmethod
    def describe(cls, plan):
        return [f"{name_of(node)}: {plan.shown(node[0])}" for node in plan.nodes]

    @staticmethod
    def scheduler_address(plan):
        return LOOPBACK

    def gathered(self):
        """Return True if the command exists; else raise `Failed`."""
        path = self.plan.env["worker"].get("PATH", os.environ.get("PATH"))
        if not shutil.which(self.plan.command[0], path=path):
            if os.path.exists(self.plan.command[0]) and "/" in self.plan.command[0]:
                raise Failed(f"{self.plan.command[0]!r} cannot be run: it is not an "
                             "executable file (chmod +x)", 126)
            raise Failed(f"no such command: {self.plan.command[0]!r}", NO_COMMAND)
        return True
