"""The watch over one start of a job, until all of it has ended or something failed.

    the scheduler is started, and listens                 else: start again
    servers and workers are started, and listen too       in their own time
    all nodes listen, and pass ps-lite's first barrier    else: start again
    workers end with code 0, then servers and scheduler   else: the job has failed
"""

import re
import signal
import time

from .job import DEADLINE, Failed, NotReady, how

PAUSE = 0.03  # seconds between two looks at the processes
#: Seconds for servers and scheduler to end after the last worker. They take less than
#: one on an idle machine, and ten retries of a second each with `PS_RESEND`.
LEAVE = 60.0
#: Seconds after which those are given up that wait for a scheduler that has left, all
#: work done: ten retries with the default time-out of a second, and some.
DESERTED = 15.0
#: Seconds until it is said that a process is stopped, and until the job is ended.
SAID, ENDED = 2.0, 30.0
STEP = 1.0  # what counts of the time between two looks for those, at most


class Watch:
    """Leads `start`, a `Start`, through its phases.

    `until`: the deadline on the monotonic clock, or None. `is_done`: called with the
    rank of a worker; whether its work is known to be done.
    """

    def __init__(self, start, until, is_done):
        self.start, self.until, self.is_done = start, until, is_done
        self.began_others = False
        self.all_joined = None  # since when
        self.looked = time.monotonic()  # for those that are stopped

    def run(self):
        """Return when the job has ended well, else raise `Failed`."""
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
        """Look until `condition()` is true, and return its value."""
        while True:
            self._look()
            is_late = self.until and time.monotonic() > self.until
            value = condition()  # after the clock, so that it knows of the deadline
            if value:
                return value
            if is_late:
                self._fail_late("the deadline passed, still running", DEADLINE)
            if not self.start.is_behind:
                time.sleep(PAUSE)

    def _look(self):
        """Raise when a process ended as it should not, or was stopped for long."""
        ended = self.start.poll()
        bad = [node for node in ended
               if self.start.ended[node].returncode and not self._is_late(node)]
        if not bad and not self.start.is_ready:
            bad = [node for node in ended if node[0] != "worker"]
        if bad:
            raise self._failed(min(bad, key=self._blame))
        self._look_for_stopped()

    def _is_late(self, node):
        """Whether a process aborted when all was done, by an error of ps-lite's."""
        code = self.start.ended[node].returncode
        if code != -signal.SIGABRT or not self.start.is_closed:
            return False
        is_done = node[0] == "worker" and self.is_done(node[1])
        if not had_closed(node[0], self.start.shown.job.output(*node), is_done):
            return False
        self.start.say("{} {} aborted after the store was closed".format(*node))
        return True

    def _is_deserted(self):
        """Whether those who still run wait for a scheduler that has left, all done."""
        if ("scheduler", 0) not in self.start.ended:
            return False
        workers = [rank for role, rank in self.start.running if role == "worker"]
        return all(map(self.is_done, workers))

    def _blame(self, node):
        """First those that were lost or that a signal ended: others fail by that."""
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
        if not self.began_others:  # its port was taken by somebody else, perhaps
            return NotReady(cause, node)
        return Failed(cause, code or 1, node)

    def _fail_late(self, what, code):
        """Raise for those that should have ended: workers, or who else is there."""
        running = self.start.running
        left = [node for node in running if node[0] == "worker"] or list(running)
        names = [self.start.describe(node) + " (stopped)" * bool(running[node].halted)
                 for node in left]
        names = ", ".join(names) or "the search for hosts"
        if ("scheduler", 0) in self.start.ended:
            names += "; the scheduler had left before"
        raise Failed(f"{what}: {names}", code, left[0] if left else None)

    def _is_ready_or_over(self):
        """Whether the store is open, or all workers have ended and opened none."""
        if self.start.is_ready or not self._workers_run():
            return True
        joined = self.start.crew.joined()
        patience = self.start.plan.settings.ready_timeout
        gone = [n for n in self.start.ended if n[0] == "worker"]
        waiting = [n for n in joined if n[0] == "worker"]
        if gone and waiting:
            raise Failed(
                f"worker {gone[0][1]} ended without opening the store, and worker "
                f"{waiting[0][1]} would wait for it for ever", 1, gone[0],
            )
        if len(joined) == len(self.start.plan.nodes):
            self.all_joined = self.all_joined or time.monotonic()
            if time.monotonic() - self.all_joined > patience:
                raise NotReady(f"all {len(joined)} nodes listen, but have not passed "
                               f"the first barrier for {patience:g} s")
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
                                   "left")
                return True
            if left and now > end:
                self._fail_late(f"{LEAVE:g} s after the last worker still running", 1)
            return not left

        self._wait(ended)
        self._wait(lambda: not self.start.is_behind)

    def _look_for_stopped(self):
        """Have patience with processes that are stopped, not dead: by SIGSTOP, or as by
        Ctrl-Z.

        Such a process keeps its connections and sends nothing, so all others wait for
        it. One that a debugger holds, and all of a machine that sleeps, are not stopped
        in this sense. Time in which the launcher itself was stopped, or held up, is not
        counted.
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
                self.start.say(f"{who} is stopped, and the job waits for it: continue "
                               f"it with `kill -CONT {process.halted}`, or the job "
                               f"ends after {ENDED:g} s")


# ---- Who aborts when all is done ----

#: The process has stopped its node; its resending thread has not noticed.
STOPPED = ("Check failed: ready_: call Start() first", "terminate called recursively")
#: Nobody has acknowledged a message: it was sent, and sent again ten times.
GAVE_UP = "num_retry < max_num_retry_"
#: The message was for the barrier of all nodes. A node's message number 1 is that at
#: which the store is opened, a later one that at which it is closed.
_BARRIER = re.compile(r"Resend \(retry=10\) .*timestamp=(\d+), .*barrier_group=7\b")


def had_closed(role, log, is_done=False):
    """Whether a process that aborted had closed its store, by all that it printed.

    With `PS_RESEND=1` a node begins to acknowledge only some time after it can receive.
    The scheduler may so count a node twice, open the last barrier of a job too early,
    once even at the job's beginning, and leave. Those who then tell it something try
    ten times, and abort; those who wait for its answer wait for ever. So neither an
    abort nor a scheduler that has left says that the work was done: what a process
    printed has to.

    A server or scheduler that gave up is believed: it leaves only when it is told to,
    and workers that still need it fail, too. A worker is not, unless the message in
    question was its last, or its work is known to be done (`is_done`).
    """
    if any(text in log for text in STOPPED):
        return True
    last = _BARRIER.search(log)
    tried_to_close = bool(last) and int(last[1]) > 1
    return GAVE_UP in log and (role != "worker" or is_done or tried_to_close)
