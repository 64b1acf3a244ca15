"""Workers and servers on a clock with ticks: every message, the same in every run.

The order is that of MXNet 1.9.1, as its logs show it. A worker pushes all its keys; the
pull of a key follows the answer to its push. A server handles one request after
another. With `dist_sync` it answers the pushes of a key when all workers have pushed
it, with `dist_async` each one at once. The durations are invented.
"""

from collections import deque
from dataclasses import dataclass

from d2l_ext.kvstore.keys import shards

#: Elements of the keys 0, 1 and 2. From a million on, a key is cut over all servers.
SIZES = (600_000, 1_500_000, 300_000)
#: Ticks: to compute a gradient, of a message under way, of the whole clock.
COMPUTE, FLIGHT, END = 6, 2, 60
MODES = ("dist_sync", "dist_async")


@dataclass
class Exchange:
    """A push and the pull after it, between `worker` and one `server` for one `key`.

    The ticks, None if after the end: `pushed` by the worker, `handled` by the server,
    `answered` by it; `asked` for the weights by the worker, `given` by the server.
    `stale`: updates that others made since the worker's weights were given to it.
    """

    worker: int
    key: int
    server: int
    pushed: int = None
    handled: int = None
    answered: int = None
    asked: int = None
    given: int = None
    stale: int = None


@dataclass
class ServerRun:
    """`begins`: for each worker the ticks at which it begins to compute, for
    `compute[worker]` ticks. `exchanges`: in the order of the pushes.
    """

    compute: list
    begins: list
    exchanges: list


def run(workers, servers, keys, mode="dist_sync", slow=1):
    """Simulate `END` ticks: a `ServerRun`.

    `keys`: the number of arrays, the first of `SIZES`. `mode`: one of `MODES`. The last
    worker computes for `slow` times as long as the others. A worker sends one request
    per tick, to all servers that hold a part of its key.
    Developed in the chapter *Out of step*.
    """
    job = _Job(workers, servers, keys, mode, slow)
    for tick in range(END):
        for worker in range(workers):
            job.work(worker, tick)
        for server in range(servers):
            job.serve(server, tick)
    return ServerRun(job.compute, job.begins, job.exchanges)


def values_bytes(servers):
    """Return the bytes of a message with values, for each key a list by server; 0:
    holds none.

    The key's 8, the length's 4, and 4 for each float32 that the server holds.
    """
    parts = [shards(key, n, servers, bound=1_000_000) for key, n in enumerate(SIZES)]
    return [[n and 4 * n + 12 for n in row] for row in parts]


class _Job:
    def __init__(self, workers, servers, keys, mode, slow):
        self.waits_for_all = mode == "dist_sync"
        self.compute = [COMPUTE] * (workers - 1) + [COMPUTE * slow]
        self.begins = [[0] for _ in range(workers)]
        self.exchanges = []
        self.holders = [
            [server for server, nbytes in enumerate(row) if nbytes]
            for row in values_bytes(servers)[:keys]
        ]
        self.step = [None] * workers  # its open exchanges, a list for each key
        self.to_send = [deque() for _ in range(workers)]
        self.to_serve = [deque() for _ in range(servers)]
        self.kept = {}  # pushes that wait for those of other workers
        self.updates, self.seen = {}, {}  # by (key, server); by worker as well

    def work(self, worker, tick):
        """Compute, ask for what was pushed, and send one request."""
        waiting = self.to_send[worker]
        if tick == self.begins[worker][-1] + self.compute[worker]:
            self.step[worker] = [
                [Exchange(worker, key, server) for server in servers]
                for key, servers in enumerate(self.holders)
            ]
            waiting.extend(("pushed", part) for part in self.step[worker])
        for part in self.step[worker] or ():
            answered = all(_landed(e.answered, tick) for e in part)
            request = ("asked", part)
            if answered and part[0].asked is None and request not in waiting:
                waiting.append(request)
        if waiting:
            self.send(*waiting.popleft(), tick)
        if self.step[worker] and all(
            _landed(e.given, tick) for part in self.step[worker] for e in part
        ):
            self.step[worker] = None
            self.begins[worker].append(tick)

    def send(self, what, part, tick):
        for e in part:
            setattr(e, what, tick)
            self.to_serve[e.server].append((what, e))
            if what == "pushed":
                self.exchanges.append(e)

    def serve(self, server, tick):
        """Handle the first request that has arrived."""
        queue = self.to_serve[server]
        if not queue or not _landed(getattr(queue[0][1], queue[0][0]), tick):
            return
        what, e = queue.popleft()
        place = e.key, server
        if what == "asked":
            e.given = tick
            self.seen[e.worker, place] = self.updates.get(place, 0)
            return
        e.handled = tick
        self.kept.setdefault(place, []).append(e)
        e.stale = self.updates.get(place, 0) - self.seen.get((e.worker, place), 0)
        if not self.waits_for_all or len(self.kept[place]) == len(self.compute):
            self.updates[place] = self.updates.get(place, 0) + 1
            for other in self.kept.pop(place):
                other.answered = tick


def _landed(tick, now):
    """Return whether a message that left at `tick` has arrived."""
    return tick is not None and tick + FLIGHT <= now
