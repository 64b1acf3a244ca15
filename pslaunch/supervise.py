"""The watch over one start of a job, until all of it has ended or something failed.

    the scheduler is started, and listens                 else: start again
    servers and workers are started, and listen too       in their own time
    all nodes listen, and pass ps-lite's first barrier    else: start again
    workers end with code 0, then servers and scheduler   else: the job has failed

A start is repeated only while no worker can have come back from
`kvstore.create('dist_…')`. What a program does before that line may be done twice.
"""

import signal
import time

from . import failures, late
from .failures import Failed, NotReady
from .job import DEADLINE
from .stopped import Stopped

PAUSE = 0.03  # seconds between two looks at the processes
#: Seconds for servers and scheduler to end after the last worker: ten retries with
#: the default time-out of a second, and some.
LEAVE = 15.0


class Watch:
    """Leads `start`, a `Start`, through its phases.

    `until`: the deadline on the monotonic clock, or None. `ready_timeout`: seconds
    for the first barrier. `show`: called with (node, line) for each line printed.
    `is_done`: called with the rank of a worker; whether its work is known to be done.
    """

    def __init__(self, start, until, ready_timeout, show, is_done):
        self.start, self.until, self.show = start, until, show
        self.ready_timeout, self.is_done = ready_timeout, is_done
        self.began_others = False
        self.all_joined = None  # since when
        self.notes = []
        self.stopped = Stopped(start.say)

    def run(self):
        """Return a list of notes when the job ended well, else raise one of the two."""
        self._wait(self.start.gathered)
        self.start.begin("scheduler")
        self._wait(self.start.joined)
        self._begin_others()
        if self._wait(self._ready_or_over) == "over":
            return ["no worker opened a distributed store"]
        self._wait(lambda: not self._workers_run() or self._is_deserted())
        self._wait_for_the_rest()
        return self.notes

    def _workers_run(self):
        return any(role == "worker" for role, _ in self.start.running)

    def _begin_others(self):
        self.began_others = True
        self.start.begin("server", "worker")

    def _wait(self, condition):
        """Look until `condition()` is true, and return its value."""
        while True:
            self._look()
            is_late = self.until and time.monotonic() > self.until
            value = condition()  # after the clock, so that it knows of the deadline
            if value:
                return value
            if is_late:
                self._fail_late("the deadline passed, still running", DEADLINE)
            time.sleep(PAUSE)

    def _look(self):
        """Show what was printed; raise when a process ended as it should not."""
        ended = self.start.poll()
        for node, line in self.start.lines:
            self.show(node, line)
        self.start.lines.clear()
        bad = [n for n in ended if self.start.codes[n] and not self._is_late(n)]
        if not bad and not self.start.is_ready:
            bad = [node for node in ended if node[0] != "worker"]
        if bad:
            raise self._failed(min(bad, key=self._blame))
        self.stopped.look(self.start.halted(), self.start.describe)

    def _is_late(self, node):
        """Whether a process aborted when all was done, by an error of ps-lite's."""
        aborted = self.start.codes[node] == -signal.SIGABRT and self.start.is_closed
        if not aborted or not self._had_closed(*node):
            return False
        self.notes.append("{} {} aborted after the store was closed".format(*node))
        return True

    def _had_closed(self, role, rank):
        is_done = role == "worker" and self.is_done(rank)
        return late.had_closed(role, self.start.log_of((role, rank)), is_done)

    def _is_deserted(self):
        """Whether those who still run wait for a scheduler that has left, all done."""
        if ("scheduler", 0) not in self.start.codes:
            return False
        workers = [rank for role, rank in self.start.running if role == "worker"]
        return all(map(self.is_done, workers))

    def _blame(self, node):
        """First those that were lost or that a signal ended: others fail by that."""
        return not self.start.lost(node), self.start.codes[node] > 0

    def _failed(self, node):
        code, who = self.start.codes[node], self.start.describe(node)
        if self.start.lost(node):
            return Failed(f"{who} was lost: {self.start.lost(node)}", code, node)
        if code < 0:
            return Failed(f"{who} {failures.how(code)}", failures.code_of(code), node)
        cause = f"{who} {failures.how(code)}"
        if not self.start.is_ready:
            cause += " before the job was ready"
        if not self.began_others:  # its port was taken by somebody else, perhaps
            return NotReady(cause, node)
        return Failed(cause, code or 1, node)

    def _fail_late(self, what, code):
        """Raise for those that should have ended: workers, or who else is there."""
        left = [n for n in self.start.running if n[0] == "worker"]
        left = left or list(self.start.running)
        halted = self.start.halted()
        names = [self.start.describe(n) + " (stopped)" * (n in halted) for n in left]
        names = ", ".join(names) or "the search for hosts"
        if ("scheduler", 0) in self.start.codes:
            names += "; the scheduler had left before"
        raise Failed(f"{what}: {names}", code, left[0] if left else None)

    def _ready_or_over(self):
        """'ready', 'over' when all workers ended and opened no store, '' before."""
        if self.start.is_ready:
            return "ready"
        if not self._workers_run():
            return "over"
        self._check_joining()
        return ""

    def _check_joining(self):
        joined = self.start.joined()
        gone = [n for n in self.start.codes if n[0] == "worker"]
        waiting = [n for n in joined if n[0] == "worker"]
        if gone and waiting:
            raise Failed(
                f"worker {gone[0][1]} ended without opening the store, and worker "
                f"{waiting[0][1]} would wait for it for ever", 1, gone[0],
            )  # fmt: skip
        if len(joined) < len(self.start.plan.nodes):
            return
        now = time.monotonic()
        self.all_joined = self.all_joined or now
        if now - self.all_joined > self.ready_timeout:
            raise NotReady(
                f"all {len(joined)} nodes listen, but have not passed the first "
                f"barrier for {self.ready_timeout:g} s"
            )

    def _wait_for_the_rest(self):
        end = time.monotonic() + LEAVE

        def ended():
            left = self.start.running
            now = time.monotonic()
            if left and self._is_deserted() and now > min(end, self.until or end):
                self.notes += [f"{role} {i} waited for the scheduler, which had left"
                               for role, i in left]  # fmt: skip
                return True
            if left and now > end:
                self._fail_late(f"{LEAVE:g} s after the last worker still running", 1)
            return not left

        self._wait(ended)
