"""One start of a job: its processes, from the first to the last."""

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from uuid import uuid4

from . import environment, ports, watchdog
from .logs import Tail, path_of


class Start:
    """The processes of one start. Leaving the `with` ends whatever still runs.

    `plan`: a `plan.Plan`. `folder`: for the logs. `remove`: folders that the
    watchdog removes, if the launcher is killed. `stream`: whether `lines`
    is wanted.
    """

    def __init__(self, plan, folder, remove=(), stream=False):
        self.plan, self.folder, self.remove = plan, folder, remove
        self.stream = stream
        self.job = uuid4().hex
        self.running, self.codes = {}, {}  # (role, rank) to Popen; to exit code
        self.tails = {node: Tail(path_of(folder, *node)) for node in plan.nodes}
        self.lines = []  # (node, line) not yet shown
        self.passed, self.count = 0, 0  # barriers of all; nodes at the next one

    def __enter__(self):
        with ExitStack() as stack:
            self.ports = stack.enter_context(ports.reserve(len(self.plan.nodes)))
            # Before all others, or they could outlive the launcher unseen.
            self._watch(stack)
            stack.callback(self.end)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def _watch(self, stack):
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, self.job,
             *map(str, self.remove)],
            stdin=subprocess.PIPE, start_new_session=True, cwd="/",
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        stack.enter_context(process)  # in the end: closes the pipe, and waits
        stack.callback(process.stdin.write, b"well")

    def begin(self, *roles):
        """Start all processes of these roles. Raises `OSError` as `start` does."""
        for role, rank in self.plan.nodes:
            if role in roles:
                own = environment.of_node(role, rank, self.plan.nodes, self.ports,
                                          self.job, self.plan.env[role])  # fmt: skip
                env = {**environment.inherited(), **own}
                command = self.plan.command_of(role)
                with open(path_of(self.folder, role, rank), "wb") as log:
                    process = self.plan.launcher.start(command, env, log)
                self.running[role, rank] = process

    def poll(self):
        """Notice what has ended and what was printed. Returns the nodes that ended."""
        ended = {node: p.poll() for node, p in self.running.items()}
        ended = {node: code for node, code in ended.items() if code is not None}
        for node, code in ended.items():
            self.codes[node] = code
            self._end_group(self.running.pop(node))
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
        return {n for n, p in zip(self.plan.nodes, self.ports) if p in open_ports}

    def end(self, grace=2.0):
        """End all processes: SIGTERM, and SIGKILL to those that stay."""
        try:
            watchdog.end(self.job, grace)
        finally:  # an interrupt came: no more grace
            for process in self.running.values():
                self._end_group(process)
            watchdog.end(self.job, grace=0)
            for process in self.running.values():
                process.wait()
            self.poll()
            if "DMLC_LOCAL" in self.plan.env["scheduler"]:
                ports.remove_files(self.ports)

    @staticmethod
    def _end_group(process):
        """End what a process has left behind in its group."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:  # nothing
            pass
