"""Simulated processes: threads that run one at a time, with links between them.

    ends = Ranks(4, dead={2}).run(work)    # work(rank, give, take) on each living rank

`give(to, data)` sends, `take(rank)` waits for a message. Both raise `ConnectionError`
for a dead rank, as a closed socket does, and `ValueError` for a rank that there is not.
A rank runs until it waits or ends; then the next one that can run does. So runs are
deterministic, and a deadlock is found at once.
"""

import ctypes
import threading
from collections import defaultdict

#: The number of messages of a rank that counts as an endless loop.
MANY = 100


class Stuck(BaseException):
    """Ends a rank that waits forever; `except Exception` does not catch it."""


class Ranks:
    """`n` ranks; those in `dead` never run, and `late` starts after all others.

    After `run`: `given[rank]`, a list of the ranks it sent to; `stuck`, the ranks that
    wait forever.
    """

    def __init__(self, n, dead=(), late=None):
        self.dead, self.late = {*dead}, late
        self.living = [rank for rank in range(n) if rank not in self.dead]
        self.given, self.stuck = {rank: [] for rank in self.living}, []
        self._links, self._over = defaultdict(list), False
        self._go = {rank: threading.Semaphore(0) for rank in self.living}
        self._back = threading.Semaphore(0)
        self._waits = dict.fromkeys(self.living)  # the rank it waits for, if any

    def run(self, work):
        """Run `work(rank, give, take)` on each living rank.

        Returns {rank: its result, or the exception that it raised} for the ranks that
        end.
        """
        ends = {}
        threads = {rank: threading.Thread(target=self._run, args=[rank, work, ends],
                                          daemon=True) for rank in self.living}
        for thread in threads.values():
            thread.start()
        try:
            while (rank := self._next()) is not None:
                del self._waits[rank]
                self._go[rank].release()
                self._back.acquire()
            self.stuck = sorted(self._waits)
            return ends
        except BaseException:  # out of time: a rank loops without waiting
            for rank, thread in threads.items():
                if rank not in self._waits and rank not in ends:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(thread.ident), ctypes.py_object(Stuck)
                    )
            raise
        finally:
            self._over = True
            for go in self._go.values():
                go.release()

    def _run(self, own, work, ends):
        """Run a rank's thread: `ends[own]` is what `work` returns, or its error."""
        self._go[own].acquire()
        try:
            ends[own] = work(own, lambda to, data: self._give(own, to, data),
                             lambda rank: self._take(own, rank))
        except Stuck:
            return
        except BaseException as error:  # noqa: BLE001 - the learner's
            ends[own] = error
        self._back.release()

    def _next(self):
        """Return the rank that runs next: the late one only if it must; else None."""
        for rank in self._waits:
            if self._can(rank):
                return rank
        late, self.late = self.late, None
        return late if late in self._waits else None

    def _can(self, rank):
        if self._waits[rank] is None:
            return rank != self.late
        return bool(self._links[self._waits[rank], rank])

    def _reach(self, rank):
        if rank in self.dead:
            raise ConnectionError(f"rank {rank} is dead")
        if rank not in self.living:
            raise ValueError(f"there is no rank {rank}")

    def _give(self, rank, to, data):
        self._reach(to)
        if len(self.given[rank]) == MANY:
            raise RuntimeError(f"a rank sends more than {MANY} messages")
        self.given[rank].append(to)
        self._links[rank, to].append(data)

    def _take(self, rank, frm):
        self._reach(frm)
        if not self._links[frm, rank] and not self._over:
            self._waits[rank] = frm
            self._back.release()
            self._go[rank].acquire()
        if self._over:
            raise Stuck
        return self._links[frm, rank].pop(0)
