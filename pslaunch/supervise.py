"""One start of a job, supervised until it has ended or something has failed.

    the scheduler starts and listens                      else: start again
    servers and workers start and listen                  no time limit
    all nodes pass ps-lite's first barrier                else: start again
    workers end with code 0, then servers and scheduler   else: the job has failed

`Start` runs the processes, `Watch` leads it through these phases.
"""

import re
import secrets
import signal
import time
from contextlib import ExitStack
from uuid import uuid4

from .crew import Guard
from .job import DEADLINE, LINES, LONGEST, Failed, NotReady, Tail, how, shorten
from .plan import RING, inherited, passed_on, variables_of
from .processes import free_ports, remove_sockets

PAUSE = 0.03  # seconds between two looks at the processes
#: Seconds for servers and scheduler to end after the last worker: less than one on an
#: idle machine, and ten retries of a second each with `PS_RESEND`.
LEAVE = 60.0
#: Seconds after which nodes are given up that wait for a scheduler that has ended, when
#: all work is done: ten retries with the default time-out of a second, and a margin.
DESERTED = 15.0
#: Seconds until a stopped process is reported, and until it ends the job.
SAID, ENDED = 2.0, 30.0
STEP = 1.0  # seconds that count between two looks for stopped processes, at most
#: Seconds for showing the remaining output when a job is ended.
SHOW = 2.0


class Start:
    """The processes of one start. Leaving the `with` ends whatever still runs.

    `plan`: a `plan.JobPlan`. `shown`: a `runner.Shown`, for the output of the processes
    and the launcher's own lines.
    """

    def __init__(self, plan, shown):
        self.plan, self.shown, self.say = plan, shown, shown.note
        self.job, self.token = uuid4().hex, secrets.token_hex(32)
        self.running, self.ended = {}, {}  # (role, rank) to `Process`
        self.logs = dict(zip(plan.nodes, shown.job.logs.values()))
        self.tails = {node: Tail(path) for node, path in self.logs.items()}
        self.told = set()  # nodes whose lines were skipped
        self.passed, self.count = 0, 0  # barriers of all nodes; nodes at the next

    def __enter__(self):
        """Start the watchdog, and the search for hosts. Raises `Failed`."""
        plan, launcher = self.plan, self.plan.launcher
        with ExitStack() as stack:
            # One for each node, and one for each worker, in case they form a ring.
            self.ports = free_ports(len(plan.nodes) + plan.settings.num_workers)
            # First: otherwise processes could outlive a launcher that is killed.
            guard = stack.enter_context(Guard(
                self.job, launcher.cancel(plan, self.job), launcher.files(self.job),
                inherited(), self.say))
            root = launcher.scheduler_address(plan)
            self.crew = launcher(plan, self.job, root, self.say, guard)
            stack.callback(self.end)
            self.crew.gathered()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def begin(self, *roles):
        """Start the processes of these roles. `OSError` if a log cannot be written."""
        for role, rank in self.plan.nodes:
            if role in roles:
                self.running[role, rank] = self._start((role, rank))

    def _start(self, node):
        own = variables_of(*node, self.plan.nodes, self.ports, self.job,
                                  self.plan.env[node[0]], self.crew.root,
                                  self._address(node))
        places = [int(own["PORT"])]
        if node[0] == "worker":
            own[RING] = self._ring()
            places.append(self.ports[len(self.plan.nodes) + node[1]])
        is_here = node not in self.crew.placed
        taken = inherited() if is_here else passed_on()
        return self.crew.start(node, self.plan.command_of(node[0]), {**taken, **own},
                               places, self.logs[node])

    def _address(self, node):
        there = self.crew.placed.get(node)
        return there.address if there else self.crew.root

    def _ring(self):
        """Return, for a ring's workers, a token, and where each worker listens."""
        workers = [node for node in self.plan.nodes if node[0] == "worker"]
        places = zip(map(self._address, workers), self.ports[len(self.plan.nodes) :])
        return " ".join([self.token, *(f"{host}:{port}" for host, port in places)])

    def describe(self, node):
        """Return 'worker 1', and its host if it is another one."""
        there = self.crew.placed.get(node)
        return "{} {}".format(*node) + (f" on {there.host}" if there else "")

    def poll(self):
        """Show new output. Returns the nodes that have ended since the last call."""
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
                    self._show(node, most=LONGEST)
                    for line in self.shown_last:
                        self._note_barrier(line)
                continue
            if self.plan.settings.stream:
                self._show(node, count=LINES)
            self._shorten(node, tail)
        return list(ended)

    def _show(self, node, **most):
        """Show the next piece of a node's output."""
        self.shown_last = self.tails[node].lines(node in self.ended, **most)
        self.shown.lines(node, self.shown_last)

    def _shorten(self, node, tail):
        """Keep up with a process that prints faster than its lines can be shown, and
        keep a temporary log from filling the disk."""
        is_kept = self.plan.settings.log_dir is not None
        fell_behind = self.plan.settings.stream and tail.left > LONGEST // 2
        if fell_behind:
            tail.skip()
        if not is_kept and shorten(self.logs[node]):
            tail.place, fell_behind = 0, True
        if fell_behind and node not in self.told:
            self.told.add(node)
            where = ", but kept in its log" if is_kept else ""
            self.say(f"{self.describe(node)} prints more than can be shown or kept: "
                     f"some lines are skipped{where}")

    @property
    def is_behind(self):
        """Whether some output has not been shown."""
        return self.plan.settings.stream and any(
            self.tails[node].left for node in self.ended if node[0] == "worker")

    def _note_barrier(self, line):
        """Count the barriers of all nodes, from a line of the scheduler's log.

        The scheduler logs how many nodes wait at barrier 7, the one of all nodes. At
        the full number it releases them, and counts anew. There are two such barriers:
        when the store is opened, and when it is closed.
        """
        found = re.search(r"Barrier count for 7 : (\d+)", line)
        if found:
            count = int(found[1])
            self.passed += count == len(self.plan.nodes) or count < self.count
            self.count = 0 if count == len(self.plan.nodes) else count

    @property
    def is_ready(self):
        """Whether the store is open; no worker returns from `create` before."""
        return self.passed > 0

    @property
    def is_closed(self):
        """Whether the store is closed: all work is done."""
        return self.passed > 1

    def end(self, grace=2.0):
        """End all processes: SIGTERM, then SIGKILL after `grace` seconds."""
        try:
            self.crew.end(grace)
        finally:
            if "DMLC_LOCAL" in self.plan.env["scheduler"]:
                remove_sockets(self.ports)
            until = time.monotonic() + SHOW
            self._poll()
            while self.is_behind and time.monotonic() < until:
                self._poll()
            if self.is_behind:
                self.say("the rest of the output is not shown")


class Watch:
    """Leads a `Start` through its phases.

    `until`: the deadline on the monotonic clock, or None. `is_done`: a function that
    says of a worker's rank whether its work is known to be done.
    """

    def __init__(self, start, until, is_done):
        self.start, self.until, self.is_done = start, until, is_done
        self.began_others = False
        self.all_joined = None  # since when
        self.looked = time.monotonic()  # for stopped processes

    def run(self):
        """Return when the job has succeeded, else raise `Failed`."""
        self._wait(self.start.crew.gathered)
        self.start.begin("scheduler")
        self._wait(self.start.crew.joined)
        self.began_others = True
        self.start.begin("server", "worker")
        self._wait(self._is_ready_or_over)
        if not self.start.is_ready:
            if self.start.plan.settings.num_servers:
                self.start.say("no worker opened a distributed store")
            self._wait(lambda: not self.start.is_behind)
            return
        self._wait(lambda: not self._workers_run() or self._is_deserted())
        self._wait_for_the_rest()

    def _workers_run(self):
        return any(role == "worker" for role, _ in self.start.running)

    def _wait(self, condition):
        """Poll until `condition()` is true; return its value."""
        while True:
            self._look()
            is_late = self.until and time.monotonic() > self.until
            value = condition()  # after the clock, to see the deadline
            if value:
                return value
            if is_late:
                self._fail_late("the deadline passed, still running", DEADLINE)
            if not self.start.is_behind:
                time.sleep(PAUSE)

    def _look(self):
        """Raise `Failed` if a process failed, or was stopped for too long."""
        ended = self.start.poll()
        bad = [node for node in ended
               if self.start.ended[node].returncode and not self._is_late(node)]
        if not bad and not self.start.is_ready:
            bad = [node for node in ended if node[0] != "worker"]
        if bad:
            raise self._failed(min(bad, key=self._blame))
        self._look_for_stopped()

    def _is_late(self, node):
        """Return whether a process aborted after all work, by a fault of ps-lite."""
        code = self.start.ended[node].returncode
        if code != -signal.SIGABRT or not self.start.is_closed:
            return False
        is_done = node[0] == "worker" and self.is_done(node[1])
        if not had_closed(node[0], self.start.shown.job.output(*node), is_done):
            return False
        self.start.say("{} {} aborted after the store was closed".format(*node))
        return True

    def _is_deserted(self):
        """Return whether all work is done, and nodes wait for an ended scheduler."""
        if ("scheduler", 0) not in self.start.ended:
            return False
        workers = [rank for role, rank in self.start.running if role == "worker"]
        return all(map(self.is_done, workers))

    def _blame(self, node):
        """Return a sort key: lost processes and those ended by a signal come first."""
        process = self.start.ended[node]
        return not process.why, process.returncode > 0

    def _failed(self, node):
        process, who = self.start.ended[node], self.start.describe(node)
        code, cause = process.returncode, f"{who} {how(process.returncode)}"
        if process.why:
            return Failed(f"{who} was lost: {process.why}", code, node)
        if code < 0:
            return Failed(cause, code, node)
        if not self.start.is_ready:
            cause += " before the job was ready"
        if not self.began_others:  # perhaps its port was taken
            return NotReady(cause, node)
        return Failed(cause, code or 1, node)

    def _fail_late(self, what, code):
        """Raise `Failed` for the processes that should have ended, workers first."""
        running = self.start.running
        left = [node for node in running if node[0] == "worker"] or list(running)
        names = [self.start.describe(node) + " (stopped)" * bool(running[node].halted)
                 for node in left]
        if left and ("scheduler", 0) in self.start.ended:
            names[-1] += "; the scheduler had ended before"
        shows = "the display of their output"
        other = shows if self.start.ended else "the search for hosts"
        raise Failed(f"{what}: {', '.join(names) or other}", code,
                     left[0] if left else None)

    def _is_ready_or_over(self):
        """Return whether the store is open, or all workers ended without opening it."""
        if self.start.is_ready or not self._workers_run():
            return True
        joined = self.start.crew.joined()
        patience = self.start.plan.settings.ready_timeout
        gone = [n for n in self.start.ended if n[0] == "worker"]
        waiting = [n for n in joined if n[0] == "worker"]
        if gone and waiting:
            raise Failed(
                f"worker {gone[0][1]} ended without opening the store; worker "
                f"{waiting[0][1]} would wait for it forever", 1, gone[0],
            )
        if len(joined) == len(self.start.plan.nodes):
            self.all_joined = self.all_joined or time.monotonic()
            if time.monotonic() - self.all_joined > patience:
                raise NotReady(f"all {len(joined)} nodes listen, but did not pass the "
                               f"first barrier in {patience:g} s")
        return False

    def _wait_for_the_rest(self):
        begun = time.monotonic()
        end, given_up = begun + LEAVE, begun + DESERTED

        def ended():
            left = self.start.running
            now = time.monotonic()
            waited = now > min(given_up, self.until or given_up)
            if left and waited and self._is_deserted():
                for role, rank in left:
                    self.start.say(f"{role} {rank} waited for the scheduler, which had "
                                   "ended")
                return True
            if left and now > end:
                self._fail_late(f"{LEAVE:g} s after the last worker still running", 1)
            return not left

        self._wait(ended)
        self._wait(lambda: not self.start.is_behind)

    def _look_for_stopped(self):
        """Report processes that SIGSTOP or Ctrl-Z has stopped, and fail after a while.

        A stopped process keeps its connections and sends nothing, so all others wait.
        Processes in a debugger, or on a machine that sleeps, do not count as stopped.
        Time in which the launcher itself was stopped or blocked does not count.
        """
        now = time.monotonic()
        step, self.looked = min(now - self.looked, STEP), now
        for node, process in self.start.running.items():
            before, who = process.patience, self.start.describe(node)
            seconds = process.patience = before + step if process.halted else 0
            if seconds >= ENDED:
                raise Failed(f"{who} was stopped for {ENDED:g} s (process "
                             f"{process.halted})", -signal.SIGSTOP, node)
            if seconds >= SAID > before:
                self.start.say(f"{who} is stopped and the job waits for it: continue "
                               f"it with `kill -CONT {process.halted}`, or the job "
                               f"ends after {ENDED:g} s")


# ---- Aborts after all work is done ----

#: The node is stopped, but its resending thread still runs.
STOPPED = ("Check failed: ready_: call Start() first", "terminate called recursively")
#: A message was sent and resent ten times without an acknowledgement.
GAVE_UP = "num_retry < max_num_retry_"
#: That message was for the barrier of all nodes. A node's message number 1 opens the
#: store; a later one closes it.
_BARRIER = re.compile(r"Resend \(retry=10\) .*timestamp=(\d+), .*barrier_group=7\b")


def had_closed(role, log, is_done=False):
    """Return whether a process that aborted had closed its store, according to its
    output.

    With `PS_RESEND=1` a node starts to acknowledge only some time after it can receive.
    The scheduler may therefore count a node twice, open the last barrier of a job too
    early (once even at the job's start), and end. A node that then sends to it tries
    ten times, and aborts; a node that waits for its answer waits forever. So neither
    an abort nor the scheduler's end proves that the work was done; the output has to.

    A server or scheduler that gave up is believed: it ends only when it is told to, and
    workers that still need it fail, too. A worker is believed only if the message in
    question was its last, or if its work is known to be done (`is_done`).
    """
    if any(text in log for text in STOPPED):
        return True
    last = _BARRIER.search(log)
    tried_to_close = bool(last) and int(last[1]) > 1
    return GAVE_UP in log and (role != "worker" or is_done or tried_to_close)
