"""A parameter server simulated: queues at its links, stragglers, stale gradients."""

from dataclasses import dataclass, field

import numpy

from .events import Events, Queue
from .link import whole


@dataclass
class Run:
    """What `simulate` saw.

    `ends`: the time at which each step was over on all workers; asynchronous, at
    which each worker was through with its own steps. `updates`: the worker of each
    update, in order. `server_busy`: seconds for which a server's link was sending
    or receiving. `events`: how many were handled.
    """

    ends: list = field(default_factory=list)
    updates: list = field(default_factory=list)
    server_busy: float = 0.0
    events: int = 0


def simulate(compute, nbytes, link, servers=1, asynchronous=False, barrier=False,
             pushed=1.0):  # fmt: skip
    """Workers that compute, push `nbytes` to all servers alike, and pull as many.

    `compute`: seconds, a row per step with an entry per worker: jitter and stragglers
    are in there. `link`: of each worker and each server, in either direction.
    `barrier`: workers begin each step together. `pushed`: as in `exchange.seconds`.

    A server's link serves workers in the order in which they come, N/s bytes each; a
    worker's own link needs the time of N bytes. All servers do the same, so one of
    them is simulated. Synchronous: the server answers when all have pushed. With
    `asynchronous` it answers each at once.

    Returns a `Run`. Raises `ValueError` for no workers and fewer than one server.
    Developed in the chapter *A cost model*.
    """
    compute = numpy.atleast_2d(numpy.asarray(compute, dtype=float))
    if not compute.size:
        raise ValueError("compute is empty: give a row per step, an entry per worker")
    whole("servers", servers)
    job = _Job(compute.tolist(), nbytes, link, servers, pushed)
    job.asynchronous, job.barrier = asynchronous, barrier and not asynchronous
    return job.run()


class _Job:
    def __init__(self, compute, nbytes, link, servers, pushed):
        self.compute, self.events = compute, Events()
        self.up, self.down = Queue(self.events), Queue(self.events)
        self.alpha = link.alpha
        # Seconds of a message at the worker's end, and at a server's.
        self.pull = nbytes * link.beta, nbytes * link.beta / servers
        self.push = tuple(pushed * seconds for seconds in self.pull)
        self.arrived, self.back, self.result = [], 0, Run()

    def run(self):
        for worker in range(len(self.compute[0])):
            self.begin(worker, 0)
        self.events.run()
        self.result.server_busy = self.up.busy + self.down.busy
        self.result.events = self.events.handled
        return self.result

    def begin(self, worker, step):
        self.events.after(self.compute[step][worker], self.send, worker, step)

    def send(self, worker, step):
        at_worker, at_server = self.push
        end = max(self.up.serve(at_server), self.events.now + at_worker)
        self.events.at(end + self.alpha, self.arrive, worker, step)

    def arrive(self, worker, step):
        self.result.updates.append(worker)
        if self.asynchronous:
            self.answer(worker, step)
            return
        self.arrived.append(worker)
        if len(self.arrived) == len(self.compute[0]):
            everybody, self.arrived = self.arrived, []
            for other in everybody:
                self.answer(other, step)

    def answer(self, worker, step):
        at_worker, at_server = self.pull
        end = max(self.down.serve(at_server), self.events.now + at_worker)
        self.events.at(end + self.alpha, self.receive, worker, step)

    def receive(self, worker, step):
        last = step + 1 == len(self.compute)
        if self.asynchronous:
            if last:
                self.result.ends.append(self.events.now)
            else:
                self.begin(worker, step + 1)
            return
        self.back += 1
        everybody = self.back == len(self.compute[0])
        if everybody:
            self.back = 0
            self.result.ends.append(self.events.now)
        if last:
            return
        if not self.barrier:
            self.begin(worker, step + 1)
        elif everybody:
            for other in range(len(self.compute[0])):
                self.begin(other, step + 1)


def tickets(updates):
    """The numbers that each worker's updates have, for `kvstore.staleness`.

    `updates`: as in a `Run`, in which each worker occurs. A list per worker, from 1.
    """
    drawn = [[] for _ in range(max(updates) + 1)]
    for number, worker in enumerate(updates, start=1):
        drawn[worker].append(number)
    return drawn
