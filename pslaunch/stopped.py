"""Patience with processes that are stopped, not dead: by SIGSTOP, or as by Ctrl-Z.

Such a process keeps its connections and sends nothing, so all others wait for it. One
that a debugger holds, and all of a machine that sleeps, are not stopped in this sense.
"""

import signal
import time

from .failures import Failed

#: Seconds until it is said that a process is stopped, and until the job is ended.
SAID, ENDED = 2.0, 30.0
STEP = 1.0  # what counts of the time between two looks, at most


class Stopped:
    """Looks at processes again and again. Time in which the launcher itself was
    stopped, or held up, is not counted. `say`: called with a line of the launcher's.
    """

    def __init__(self, say):
        self.say, self.seconds, self.looked = say, {}, time.monotonic()

    def look(self, halted, describe):
        """`halted`: a dict from nodes to ids of stopped processes. Raises `Failed`."""
        now = time.monotonic()
        step, self.looked = min(now - self.looked, STEP), now
        before, self.seconds = self.seconds, {}
        for node, pid in halted.items():
            seconds = self.seconds[node] = before.get(node, 0) + step
            if seconds >= ENDED:
                raise Failed(f"{describe(node)} was stopped for {ENDED:g} s (process "
                             f"{pid})", 128 + signal.SIGSTOP, node)  # fmt: skip
            if seconds >= SAID > before.get(node, 0):
                self.say(f"{describe(node)} is stopped, and the job waits for it: "
                         f"continue it with `kill -CONT {pid}`, or the job ends after "
                         f"{ENDED:g} s")  # fmt: skip
