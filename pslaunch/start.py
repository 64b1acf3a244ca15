"""One start of a job: its processes, from the first to the last."""

import os
import re
import signal
from contextlib import ExitStack, suppress
from uuid import uuid4

from . import environment, local, ports
from .guard import Guard
from .logs import Tail, path_of


class Start:
    """The processes of one start. Leaving the `with` ends whatever still runs.

    `plan`: a `plan.Plan`. `folder`: for the logs. `stream`: whether `lines`
    is wanted. `say`: called with a line of the launcher's own.
    """

    def __init__(self, plan, folder, stream=False, say=print):
        self.plan, self.folder = plan, folder
        self.stream, self.say = stream, say
        self.job = uuid4().hex
        self.crew, self.root = None, environment.LOOPBACK
        self.running, self.codes = {}, {}  # (role, rank) to Popen; to exit code
        self.tails = {node: Tail(path_of(folder, *node)) for node in plan.nodes}
        self.lines = []  # (node, line) not yet shown
        self.passed, self.count = 0, 0  # barriers of all; nodes at the next one

    def __enter__(self):
        with ExitStack() as stack:
            self.ports = stack.enter_context(self._reserve())
            # Before all others, or they could outlive the launcher unseen.
            self.guard = stack.enter_context(self._watchdog())
            stack.callback(self.end)
            self.stack = stack.pop_all()
        return self

    def _reserve(self):
        """One port for each node; of those elsewhere, agents make the claim."""
        hold = None if self.plan.launcher is local else 1
        return ports.reserve(len(self.plan.nodes), hold)

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def _watchdog(self):
        crew = getattr(self.plan.launcher, "Crew", None)
        cancel = crew.cancel(self.plan, self.job) if crew else []
        paths = crew.files(self.job) if crew else []
        return Guard(self.job, cancel, paths, self.say)

    def begin(self, *roles):
        """Start all processes of these roles. Raises `OSError` as `start` does."""
        for role, rank in self.plan.nodes:
            if role in roles:
                here = self.crew is None or role == "scheduler"
                start = self._start_here if here else self._start_there
                self.running[role, rank] = start((role, rank))

    def _start_here(self, node):
        env = {**environment.inherited(), **self._env_of(node, self.root)}
        command = self.plan.command_of(node[0])
        return self.guard.start(command, env, path_of(self.folder, *node))

    def _start_there(self, node):
        env = self._env_of(node, self.crew.placed[node].address)
        return self.crew.start(node, self.plan.command_of(node[0], there=True),
                               {**environment.passed_on(), **env},
                               int(env["PORT"]), path_of(self.folder, *node))

    def _env_of(self, node, address):
        return environment.of_node(*node, self.plan.nodes, self.ports, self.job,
                                   self.plan.env[node[0]], self.root, address)

    def gathered(self):
        """Whether all hosts are there; the search begins with the first call."""
        launcher = self.plan.launcher
        if launcher is local:
            return True
        if self.crew is None:
            self.root = launcher.root(self.plan)
            self.crew = launcher.Crew(self.plan, self.job, self.root, self.say)
        return self.crew.gathered()

    def describe(self, node):
        """'worker 1', and on which host when there are several."""
        there = self.crew and self.crew.placed.get(node)
        return "{} {}".format(*node) + (f" on {there.host}" if there else "")

    def lost(self, node):
        """Why a process on another host can't be reached any more; None if it can."""
        there = self.crew and self.crew.placed.get(node)
        return there.member.why if there and there.member else None

    def halted(self):
        """The nodes that a signal has stopped: a dict to the ids of what is stopped."""
        return {node: process.halted for node, process in self.running.items()
                if process.halted}  # fmt: skip

    def poll(self):
        """Notice what has ended and what was printed. Returns the nodes that ended."""
        if self.crew:
            self.crew.pump()
        self.guard.pump()
        ended = self._poll()
        if len(self.codes) < len(self.plan.nodes):
            self.guard.check()
        return ended

    def _poll(self):
        ended = {node: p.poll() for node, p in self.running.items()}
        ended = {node: code for node, code in ended.items() if code is not None}
        for node, code in ended.items():
            self.codes[node] = code
            del self.running[node]
        for node, tail in self.tails.items():
            wanted = node[0] == "scheduler" and (ended or not self.is_ready)
            if self.stream or wanted:
                for line in tail.lines(last=node in self.codes):
                    self.lines.append((node, line))
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

    def log_of(self, node):
        """All that a process has printed."""
        text = path_of(self.folder, *node).read_bytes()
        return text.decode("utf-8", errors="replace")

    def joined(self):
        """The nodes that have opened the store: each listens on its port."""
        open_ports = {port for _, port in ports.listening()}
        here = {n for n, p in zip(self.plan.nodes, self.ports) if p in open_ports}
        if self.crew:
            return self.crew.joined() | (here & {("scheduler", 0)})
        return here

    def end(self, grace=2.0):
        """End all processes: SIGTERM, and SIGKILL to those that stay."""
        try:
            if self.crew:
                self.crew.end(grace)
            self.guard.end(grace)
        finally:  # an interrupt came: no more grace
            for process in self.running.values():
                self._end_group(process)
            self.guard.end(grace=0)
            self._poll()
            if "DMLC_LOCAL" in self.plan.env["scheduler"]:
                ports.remove_files(self.ports)

    @staticmethod
    def _end_group(process):
        """End all of its group, even without a watchdog; elsewhere its agent does."""
        with suppress(OSError):  # nothing
            if process.pid:
                os.killpg(process.pid, signal.SIGKILL)
