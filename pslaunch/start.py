"""One start of a job: its processes, from the first to the last."""

import re
import secrets
import time
from contextlib import ExitStack
from uuid import uuid4

from . import environment, ports
from .crew import Guard
from .job import LONGEST, Tail, shorten

#: Seconds for lines that are left when a job is ended.
SHOW = 2.0


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
        self.told = set()  # whose lines were left out
        self.passed, self.count = 0, 0  # barriers of all; nodes at the next one

    def __enter__(self):
        """The search for hosts begins. Raises `Failed`."""
        plan, launcher = self.plan, self.plan.launcher
        with ExitStack() as stack:
            # For each node, and one more for each worker: of a ring, if they make one.
            self.ports = ports.free(len(plan.nodes) + plan.settings.num_workers)
            # Before all others, or they could outlive the launcher unseen.
            guard = stack.enter_context(Guard(
                self.job, launcher.cancel(plan, self.job), launcher.files(self.job),
                self.say))
            root = launcher.scheduler_address(plan)
            self.crew = launcher(plan, self.job, root, self.say, guard)
            stack.callback(self.end)
            self.crew.gathered()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def begin(self, *roles):
        """Start all processes of these roles. Raises `OSError` without a log."""
        for role, rank in self.plan.nodes:
            if role in roles:
                self.running[role, rank] = self._start((role, rank))

    def _start(self, node):
        own = environment.of_node(*node, self.plan.nodes, self.ports, self.job,
                                  self.plan.env[node[0]], self.crew.root,
                                  self._address(node))
        places = [int(own["PORT"])]
        if node[0] == "worker":
            own[environment.RING] = self._ring()
            places.append(self.ports[len(self.plan.nodes) + node[1]])
        is_here = node not in self.crew.placed
        taken = environment.inherited() if is_here else environment.passed_on()
        return self.crew.start(node, self.plan.command_of(node[0]), {**taken, **own},
                               places, self.logs[node])

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
        ended = self._poll()
        if len(self.ended) < len(self.plan.nodes):
            self.crew.guard.check()
        return ended

    def _poll(self):
        ended = {node: process for node, process in self.running.items()
                 if process.returncode is not None}
        self.ended.update(ended)
        for node in ended:
            del self.running[node]
        for node, tail in self.tails.items():
            if node[0] == "scheduler":
                if self.plan.settings.stream or ended or not self.is_ready:
                    self._show(node, LONGEST)
                    for line in self.shown_last:
                        self._note_barrier(line)
                continue
            if self.plan.settings.stream:
                self._show(node)
            self._shorten(node, tail)
        return list(ended)

    def _show(self, node, *most):
        """Show what is new of a node, a piece of it at a time."""
        self.shown_last = self.tails[node].lines(node in self.ended, *most)
        self.shown.lines(node, self.shown_last)

    def _shorten(self, node, tail):
        """Keep up with a process that prints faster than its lines can be shown, and
        keep a log that nobody asked for from filling the disk."""
        is_kept = self.plan.settings.log_dir is not None
        fell_behind = self.plan.settings.stream and tail.left > LONGEST // 2
        if fell_behind:
            tail.skip()
        if not is_kept and shorten(self.logs[node]):
            tail.place, fell_behind = 0, True
        if fell_behind and node not in self.told:
            self.told.add(node)
            self.say(f"{self.describe(node)} prints more than can be shown or kept: "
                     "earlier lines are left out, again and again" +
                     (", and are in its log" if is_kept else ""))

    @property
    def is_behind(self):
        """Whether more was printed than was shown."""
        return self.plan.settings.stream and any(
            self.tails[node].left for node in self.ended if node[0] == "worker")

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

    def end(self, grace=2.0):
        """End all processes: SIGTERM, and SIGKILL to those that stay."""
        try:
            self.crew.end(grace)
        finally:
            if "DMLC_LOCAL" in self.plan.env["scheduler"]:
                ports.remove_files(self.ports)
            until = time.monotonic() + SHOW
            self._poll()
            while self.is_behind and time.monotonic() < until:
                self._poll()
            if self.is_behind:
                self.say("the rest of what was printed is not shown")

