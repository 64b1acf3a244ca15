"""A discrete-event simulator: stragglers, queues, stale gradients.

The clock jumps to the next event.
"""

import heapq
from math import isfinite
from typing import NamedTuple

import numpy

from ..checks import known_name, whole_number
from ..data_parallel import costs
from ..data_parallel.allreduce.algorithm import algorithms
from ..pipeline.schedule import clock, gpipe
from .step import check_stages


class Events:
    """A clock, `now` in seconds, and scheduled actions.

        events = Events()
        events.after(2.0, print, "two seconds later")
        events.run()

    Actions at the same time run in the order in which they were scheduled, so the same
    input always gives the same run. `handled`: the number of actions that have run.
    Developed in the chapter *Simulating a cluster*.
    """

    def __init__(self):
        self.now, self.handled = 0.0, 0
        self._waiting, self._asked = [], 0

    def after(self, seconds, action, *args):
        """Schedule `action(*args)` in `seconds`; `ValueError` if that is below 0."""
        self.at(self.now + seconds, action, *args)

    def at(self, time, action, *args):
        """Schedule `action(*args)` at `time`; `ValueError` if that is past."""
        if not (time >= self.now and isfinite(time)):
            raise ValueError(f"an event at {time} s: give a finite time from now on, "
                             f"{self.now} s")
        heapq.heappush(self._waiting, (time, self._asked, action, args))
        self._asked += 1

    def run(self):
        """Run all actions, also new ones; return the time of the last."""
        waiting = self._waiting
        while waiting:
            self.now, _, action, args = heapq.heappop(waiting)
            self.handled += 1
            action(*args)
        return self.now


class Queue:
    """A resource that serves one request after another: a link, a server, a device.

    `free`: the time at which it becomes idle.
    """

    def __init__(self, events):
        self.events, self.free = events, 0.0

    def serve(self, seconds):
        """Queue a request of `seconds`; return the time at which it ends."""
        self.free = max(self.free, self.events.now) + seconds
        return self.free


def allreduce(way, ready, nbytes, link, chunks=1):
    """Return the time at which each device has the sum, if gradient i is ready at
    `ready[i]`.

    `way`: one of `costs.names()`, or `'network'`, where switches add. `ready`: seconds,
    one per device. `chunks`: for `'network'`. A message takes α + n·β at either end,
    and arrives no earlier than that after its receiver was free. If all are ready at
    the same time, the last has the sum after the time of `costs.seconds`.

    Returns a NumPy array. Raises `ValueError` for an unknown way, no devices, and
    `chunks` below 1.
    Developed in the chapter *Simulating a cluster*.
    """
    ready = numpy.array(ready, dtype=float)
    known_name("way", way, (*costs.names(), "network"))
    whole_number("chunks", chunks)
    if not ready.size:
        raise ValueError("there are no devices: give a time for each")
    if ready.size == 1:
        return ready
    if way == "network":
        return _network(ready, nbytes, link, chunks)
    if way == "ring":
        return _ring(ready, nbytes, link)
    return _walk(algorithms()[way].schedule(ready.size), ready, nbytes, link)


def steps(way, compute, nbytes, link):
    """Return the end of each step, a NumPy array: devices compute, then exchange, and
    so on.

    `compute`: seconds, one row per step with one entry per device. Devices wait only
    for messages: a device continues as soon as it has its own sum.
    """
    now, ends = numpy.zeros(numpy.shape(compute)[1]), []
    for seconds in numpy.asarray(compute, dtype=float):
        now = allreduce(way, now + seconds, nbytes, link)
        ends.append(now.max())
    return numpy.array(ends)


def messages(schedule, route, ready):
    """Return the time of each device's last message, if messages queue for links.

        messages(hierarchy.schedule(2, 4, nbytes), route, [0.0] * 8)

    `schedule`: rounds of (from, to, bytes), in which each device sends one message and
    receives one; it sends when it has received the previous round's. `route(i, j)`:
    the name of the link from i to j, and its `Link`. `ready`: seconds, one per device.

    Returns the times, and each link's messages: name -> [(begin, end, round, from), …].
    Developed in the chapter *Two kinds of links*.
    """
    events, queues, carried = Events(), {}, {}
    rounds = [{i: message for i, *message in row} for row in schedule]
    arrived, at, ends = [set() for _ in ready], [-1] * len(ready), list(ready)

    def arrive(i, number):
        arrived[i].add(number)
        ends[i] = events.now
        while at[i] in arrived[i]:  # a message may overtake one of the round before
            at[i] += 1
            if at[i] < len(rounds):
                j, nbytes = rounds[at[i]][i]
                name, link = route(i, j)
                took = nbytes * link.beta
                end = queues.setdefault(name, Queue(events)).serve(took)
                carried.setdefault(name, []).append((end - took, end, at[i], i))
                events.at(end + link.alpha, arrive, j, at[i])

    for i, seconds in enumerate(ready):
        events.at(seconds, arrive, i, -1)
    events.run()
    return ends, carried


def pipeline(forward, backward, chunks, message=0.0):
    """Return the seconds of a GPipe step, simulated; valid also where the formula is
    not.

    `message`: seconds from one stage to the next, either way; stages do not wait while
    sending. The rest and errors as in `step.pipeline_seconds`.
    """
    check_stages(forward, backward)
    slots = clock(gpipe(len(forward), chunks), forward, backward, message)
    return max(slot.end for slot in slots)


class Run(NamedTuple):
    """The result of `serve`.

    `ends`: the time at which each step ended on all workers; if asynchronous, at which
    each worker finished its last one, in this order. `updates`: the worker of each
    update, in order.
    """

    ends: list
    updates: list


def serve(compute, nbytes, link, servers=1, asynchronous=False, barrier=False,
          pushed=1.0):
    """Simulate workers that compute, push `nbytes` spread over all servers, and pull
    the same.

    `compute`: seconds, one row per step with one entry per worker, with any jitter and
    stragglers. `link`: of each worker and each server, in either direction.
    `barrier`: workers begin each step together. `pushed`: as in
    `step.exchange_seconds`.

    A server's link serves workers in the order of arrival, N/s bytes each; a worker's
    own link needs the time of N. All servers behave alike, so one is simulated. It
    answers when all have pushed, or with `asynchronous` each worker at once. Returns a
    `Run`. Raises `ValueError` for no workers and fewer than one server. Developed in
    the chapter *Simulating a cluster*.
    """
    compute = numpy.atleast_2d(numpy.asarray(compute, dtype=float))
    if not compute.size:
        raise ValueError("compute is empty: give a row per step, an entry per worker")
    whole_number("servers", servers)
    pull = nbytes * link.beta, nbytes * link.beta / servers  # at a worker, at a server
    push = tuple(pushed * seconds for seconds in pull)
    job = _Served(compute.tolist(), link.alpha, push, pull, asynchronous, barrier)
    for worker in job.workers:
        job.compute(worker, 0)
    job.events.run()
    return job.run


class _Served:
    """The events of `serve`: a worker computes and pushes; a server answers.

    `push`, `pull`: the seconds of a message at a worker and at a server.
    """

    def __init__(self, seconds, alpha, push, pull, asynchronous, barrier):
        self.seconds, self.alpha, self.push, self.pull = seconds, alpha, push, pull
        self.asynchronous, self.barrier = asynchronous, barrier
        self.events, self.run = Events(), Run([], [])
        self.up, self.down = Queue(self.events), Queue(self.events)
        self.workers = range(len(seconds[0]))
        self.pushed, self.pulled = [], []  # workers, in this step

    def compute(self, worker, step):
        """Compute, then push."""
        self.events.after(self.seconds[step][worker], self.send, self.up, self.push,
                          self.serve, worker, step)

    def send(self, queue, seconds, action, *args):
        """Send a message through a server's link; run `action` on arrival."""
        at_worker, at_server = seconds
        end = max(queue.serve(at_server), self.events.now + at_worker)
        self.events.at(end + self.alpha, action, *args)

    def serve(self, worker, step):
        """Take a push; answer it, or all pushes when the last has arrived."""
        self.run.updates.append(worker)
        self.pushed.append(worker)
        if self.asynchronous or len(self.pushed) == len(self.workers):
            for other in self.pushed:
                self.send(self.down, self.pull, self.receive, other, step)
            self.pushed.clear()

    def receive(self, worker, step):
        """End the step of this worker, and begin its next one, or that of all."""
        self.pulled.append(worker)
        all_have = len(self.pulled) == len(self.workers)
        if all_have:
            self.pulled.clear()
        last = step == len(self.seconds) - 1
        if last if self.asynchronous else all_have:
            self.run.ends.append(self.events.now)
        if not last and (all_have or not self.barrier):
            for one in self.workers if self.barrier else [worker]:
                self.compute(one, step + 1)


def tickets(updates):
    """Return the numbers of each worker's updates, from 1, for `kvstore.staleness`.

    `updates`: as in a `Run`, at least one of each worker. Returns one list per worker.
    """
    drawn = [[] for _ in range(max(updates) + 1)]
    for number, worker in enumerate(updates, start=1):
        drawn[worker].append(number)
    return drawn


def _walk(schedule, ready, nbytes, link):
    """Walk the rounds: a message is under way once its sender and receiver are free."""
    for row in schedule.rounds:
        source, target, _, pieces = numpy.array(row).T
        seconds = link.seconds(nbytes * pieces / schedule.pieces)
        now = ready.copy()  # of this round: all its messages are sent at once
        now[source] = ready[source] + seconds
        arrived = numpy.maximum(ready[source], ready[target]) + seconds
        now[target] = numpy.maximum(now[target], arrived)
        ready = now
    return ready


def _ring(ready, nbytes, link):
    """Simulate 2(k − 1) rounds of tᵢ = max(tᵢ, tᵢ₋₁) + c, without a loop over rounds.

    After r rounds tᵢ is the maximum over device i and the r before it, plus r·c. Each
    step doubles the window of the maximum: 2, 4, 8 … devices.
    """
    k = ready.size
    rounds, window = 2 * (k - 1), 1
    while window < k:  # after k − 1 rounds every device depends on every other
        ready = numpy.maximum(ready, numpy.roll(ready, min(window, k - window)))
        window *= 2
    return ready + rounds * link.seconds(nbytes / k)


def _network(ready, nbytes, link, chunks):
    # A switch sends a chunk's sum down when the last device has sent its own up.
    ready[:] = ready.max() + (chunks + 1) * link.seconds(nbytes / chunks)
    return ready
