"""One start of a job: its processes, from the first to the last.

Those here are the children of a watchdog (`processes.py`), of which `Guard` is the
launcher's end; those on other hosts are the agents', of which a `Crew` is.
"""

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from uuid import uuid4

from . import environment, ports, processes
from .channel import Channel
from .job import Failed, Process, Tail, how
from .local import Local


class Start:
    """The processes of one start. Leaving the `with` ends whatever still runs.

    `plan`: a `plan.Plan`. `shown`: a `runner.Shown`, for what processes print, and the
    launcher has to say.
    """

    def __init__(self, plan, shown):
        self.plan, self.shown, self.say = plan, shown, shown.note
        self.job, self.token = uuid4().hex, secrets.token_hex(32)
        self.running, self.ended = {}, {}  # (role, rank) to `Process`
        self.logs = dict(zip(plan.nodes, shown.job.logs.values()))
        self.tails = {node: Tail(path) for node, path in self.logs.items()}
        self.passed, self.count = 0, 0  # barriers of all; nodes at the next one

    def __enter__(self):
        """The search for hosts begins. Raises `Failed`."""
        plan, launcher = self.plan, self.plan.launcher
        hold = None if launcher is Local else 1  # of the others, agents make the claim
        with ExitStack() as stack:
            # For each node, and one more for each worker: of a ring, if they make one.
            count = len(plan.nodes) + plan.settings.num_workers
            self.ports = stack.enter_context(ports.reserve(count, hold))
            # Before all others, or they could outlive the launcher unseen.
            self.guard = stack.enter_context(Guard(
                self.job, launcher.cancel(plan, self.job), launcher.files(self.job),
                self.say))  # fmt: skip
            root = launcher.scheduler_address(plan)
            self.crew = launcher(plan, self.job, root, self.say)
            stack.callback(self.end)
            self.crew.gathered()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def begin(self, *roles):
        """Start all processes of these roles. Raises `OSError` as `start` does."""
        for role, rank in self.plan.nodes:
            if role in roles:
                self.running[role, rank] = self._start((role, rank))

    def _start(self, node):
        there = self.crew.placed.get(node)
        command = self.plan.command_of(node[0], there=there)
        own = environment.of_node(*node, self.plan.nodes, self.ports, self.job,
                                  self.plan.env[node[0]], self.crew.root,
                                  self._address(node))  # fmt: skip
        if node[0] == "worker":
            own[environment.RING] = self._ring()
        if there:
            return self.crew.start(node, command, {**environment.passed_on(), **own},
                                   int(own["PORT"]), self.logs[node])  # fmt: skip
        env = {**environment.inherited(), **own}
        return self.guard.start(command, env, self.logs[node])

    def _address(self, node):
        there = self.crew.placed.get(node)
        return there.address if there else self.crew.root

    def _ring(self):
        """For workers that make a ring: a token, and where each of them listens."""
        workers = [node for node in self.plan.nodes if node[0] == "worker"]
        places = zip(map(self._address, workers), self.ports[len(self.plan.nodes) :])
        return " ".join([self.token, *(f"{host}:{port}" for host, port in places)])

    def describe(self, node):
        """'worker 1', and on which host when there are several."""
        there = self.crew.placed.get(node)
        return "{} {}".format(*node) + (f" on {there.host}" if there else "")

    def poll(self):
        """Show what was printed. Returns the nodes that have ended meanwhile."""
        self.crew.pump()
        self.guard.pump()
        ended = self._poll()
        if len(self.ended) < len(self.plan.nodes):
            self.guard.check()
        return ended

    def _poll(self):
        ended = {node: process for node, process in self.running.items()
                 if process.returncode is not None}  # fmt: skip
        self.ended.update(ended)
        for node in ended:
            del self.running[node]
        for node, tail in self.tails.items():
            wanted = node[0] == "scheduler" and (ended or not self.is_ready)
            if self.plan.settings.stream or wanted:
                for line in tail.lines(last=node in self.ended):
                    self.shown.line(node, line)
                    if node[0] == "scheduler":
                        self._note_barrier(line)
        return list(ended)

    def _note_barrier(self, line):
        """Notice, in the scheduler's log, that all have passed a barrier of all.

        It counts the nodes that have come to barrier number 7, of all. At their full
        number it lets them go, and begins to count anew. There are two such barriers:
        one when the store is opened, and one when it is closed.
        """
        found = re.search(r"Barrier count for 7 : (\d+)", line)
        if found:
            count = int(found[1])
            self.passed += count == len(self.plan.nodes) or count < self.count
            self.count = 0 if count == len(self.plan.nodes) else count

    @property
    def is_ready(self):
        """Whether the store is open: no worker could come back from `create` before."""
        return self.passed > 0

    @property
    def is_closed(self):
        """Whether the store is closed: all work is done, and its answers are there."""
        return self.passed > 1

    def joined(self):
        """The nodes that have opened the store: each listens on its port."""
        open_ports = {port for _, port in ports.listening()}
        here = {node for node, port in zip(self.plan.nodes, self.ports)
                if port in open_ports and node not in self.crew.placed}  # fmt: skip
        return here | self.crew.joined()

    def end(self, grace=2.0):
        """End all processes: SIGTERM, and SIGKILL to those that stay."""
        try:
            self.crew.end(grace)
            self.guard.end(grace)
        finally:  # an interrupt came: no more grace
            self.guard.end(grace=0)
            if "DMLC_LOCAL" in self.plan.env["scheduler"]:
                ports.remove_files(self.ports)
            self._poll()


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
                [sys.executable, "-I", "-S", "-X", utf8, processes.__file__, *words],
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
        failed = []
        for message, _ in self.channel.pump():
            process = self.started[message["number"]]
            if message["is"] == "begun":
                process.pid = message["pid"]
            elif message["is"] == "halted":
                process.halted = message["pid"]
            elif message["is"] == "ended":
                process.set(message["code"])
            else:
                process.set(126)
                failed.append(message["text"])
        if failed:
            raise Failed(f"the command cannot be started: {failed[0]}", 126)

    def check(self):
        """Continue a watchdog that was stopped. Raises `Failed` when it has ended."""
        if self.watchdog.poll() is not None or self.channel.ended:
            code = self.watchdog.wait()
            raise Failed(f"the watchdog {how(code)}, and its job with it", code or 1)
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
        while self._running() and self.watchdog.poll() is None:
            if time.monotonic() > until:
                break
            with suppress(Failed):
                self.check()
                self.pump()
            processes.end(self.job, grace=0, under=self.parent)  # begun late
        for process in self._running():
            if process.pid:
                with suppress(OSError):  # there is nobody in its group
                    os.killpg(process.pid, signal.SIGKILL)
            process.set(-signal.SIGKILL)

    def _running(self):
        return [process for process in self.started if process.returncode is None]
