"""One start of a job: its processes, from the first to the last."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from uuid import uuid4

from . import environment, ports, watchdog
from .logs import Tail, path_of


class Start:
    """The processes of one start. Leaving the `with` ends whatever still runs.

    `plan`: a `plan.Plan`. `folder`: for the logs. `remove`: a folder that the
    watchdog removes, or None, if the launcher is killed.
    """

    def __init__(self, plan, folder, remove=None):
        self.plan, self.folder, self.remove = plan, folder, remove
        self.job = uuid4().hex
        self.running, self.codes = {}, {}  # (role, rank) to Popen; to exit code
        self.tails = {node: Tail(path_of(folder, *node)) for node in plan.nodes}
        self.lines = []  # (node, line) not yet shown
        self.is_ready = False

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
        folder = [str(self.remove)] if self.remove else []
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, self.job, *folder],
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
            for line in tail.lines(last=node in self.codes):
                self.lines.append((node, line))
                if node[0] == "scheduler" and self._is_last_to_join(line):
                    self.is_ready = True
        return list(ended)

    def _is_last_to_join(self, line):
        """Whether this line of the scheduler says that all passed the first barrier."""
        return line.endswith(f"Barrier count for 7 : {len(self.plan.nodes)}")

    def joined(self):
        """The nodes that have opened the store: each listens on its port."""
        open_ports = {port for _, port in ports.listening()}
        return {n for n, p in zip(self.plan.nodes, self.ports) if p in open_ports}

    def still(self, *roles):
        """The processes of these roles that have not ended, as text."""
        return ", ".join(f"{r} {i}" for r, i in self.running if r in roles)

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
            self.running.clear()
            self.poll()

    @staticmethod
    def _end_group(process):
        """End what a process has left behind in its group."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:  # nothing
            pass
