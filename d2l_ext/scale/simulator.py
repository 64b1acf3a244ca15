"""A simulator, for what has no closed form: stragglers, queues, stale gradients.

What happens next, happens next, and time jumps there.
"""

import heapq
from math import isfinite
from typing import NamedTuple

import numpy

from ..checks import known_name, whole_number
from ..data_parallel.allreduce import tree
from ..pipeline.schedule import clock, gpipe
from .step import check_stages


class Events:
    """A clock, `now` in seconds, and actions that wait for their time.

        events = Events()
        events.after(2.0, print, "two seconds later")
        events.run()

    Actions of the same time run in the order in which they were asked for, so the
    same input gives the same run, always. `handled`: how many have run.
    Developed in the chapter *Simulating a cluster*.
    """

    def __init__(self):
        self.now, self.handled = 0.0, 0
        self._waiting, self._asked = [], 0

    def after(self, seconds, action, *args):
        """Run `action(*args)` in `seconds`, from 0. Raises `ValueError` otherwise."""
        self.at(self.now + seconds, action, *args)

    def at(self, time, action, *args):
        """Run `action(*args)` at `time`, not before now."""
        if not (time >= self.now and isfinite(time)):
            raise ValueError(f"it is {self.now} s: an event at {time} s cannot be")
        heapq.heappush(self._waiting, (time, self._asked, action, args))
        self._asked += 1

    def run(self):
        """Run all actions, and those that they ask for; return the time of the last."""
        waiting = self._waiting
        while waiting:
            self.now, _, action, args = heapq.heappop(waiting)
            self.handled += 1
            action(*args)
        return self.now


class Queue:
    """Something that serves one customer after another: a link, a server, a device.

    `free`: from when on nobody is being served.
    """

    def __init__(self, events):
        self.events, self.free = events, 0.0

    def serve(self, seconds):
        """Take `seconds` of service, behind all who came before; returns its end."""
        self.free = max(self.free, self.events.now) + seconds
        return self.free


def allreduce(way, ready, nbytes, link, **chunks):
    """When each device has the sum, if device i has its gradient at `ready[i]`.

    `way`: `'naive'`, `'tree'` or `'ring'`, or `'network'`, with `chunks`, default 1,
    where switches add up. `ready`: seconds, one per device. A message starts when both
    of its ends are free, and takes α + n·β. From equal times all end as
    `traffic.seconds` says; from others, only this tells.

    Returns a NumPy array. Raises `ValueError` for an unknown way, and no devices.
    Developed in the chapter *Simulating a cluster*.
    """
    ready = numpy.array(ready, dtype=float)
    known_name("way", way, _FINISH)
    if not ready.size:
        raise ValueError("there are no devices: give a time for each")
    return _FINISH[way](ready, nbytes, link, **chunks) if ready.size > 1 else ready


def steps(way, compute, nbytes, link):
    """The end of each step, a NumPy array: devices compute, then exchange, and so on.

    `compute`: seconds, a row per step with an entry per device. Nobody waits for
    anything but messages: a device goes on as soon as it has its own sum.
    """
    now, ends = numpy.zeros(numpy.shape(compute)[1]), []
    for seconds in numpy.asarray(compute, dtype=float):
        now = allreduce(way, now + seconds, nbytes, link)
        ends.append(now.max())
    return numpy.array(ends)


def messages(schedule, route, ready):
    """When each device has its last message, where messages queue for links.

        messages(hierarchy.schedule(2, 4, nbytes), route, [0.0] * 8)

    `schedule`: rounds of (from, to, bytes), in which each device sends one message and
    gets one; it sends when it has that of the round before. `route(i, j)`: the name of
    the link from i to j, and its `Link`. `ready`: seconds, one per device.

    Returns the times, and what each link carried: name -> (begin, end, round, from).
    Developed in the chapter *Two kinds of links*.
    """
    events, queues, carried = Events(), {}, {}
    rounds = [{i: message for i, *message in row} for row in schedule]
    arrived, at, ends = [set() for _ in ready], [-1] * len(ready), list(ready)

    def arrive(i, number):
        arrived[i].add(number)
        ends[i] = events.now
        while at[i] in arrived[i]:  # a message may overtake that of the round before
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
    """Seconds of a GPipe step, work by work; also where the formula does not hold.

    `message`: seconds from one stage to the next, either way; the stages do not wait
    for it to be sent. The rest and errors as in `step.pipeline_seconds`.
    """
    check_stages(forward, backward)
    slots = clock(gpipe(len(forward), chunks), forward, backward, message)
    return max(slot.end for slot in slots)


class Run(NamedTuple):
    """What `serve` saw.

    `ends`: the time at which each step was over on all workers; asynchronous, at
    which each worker was through with its own steps. `updates`: the worker of each
    update, in order.
    """

    ends: list
    updates: list


def serve(compute, nbytes, link, servers=1, asynchronous=False, barrier=False,
          pushed=1.0):
    """Workers that compute, push `nbytes` to all servers alike, and pull as many.

    `compute`: seconds, a row per step with an entry per worker: jitter and stragglers
    are in there. `link`: of each worker and each server, in either direction.
    `barrier`: workers begin each step together. `pushed`: as in
    `step.exchange_seconds`.

    A server's link serves workers as they come, N/s bytes each; a worker's own needs
    the time of N. All servers do the same: one is simulated. It answers when all have
    pushed; with `asynchronous` it answers each at once. Returns a `Run`. Raises
    `ValueError` for no workers and fewer than one server. Developed in the chapter
    *Simulating a cluster*.
    """
    compute = numpy.atleast_2d(numpy.asarray(compute, dtype=float))
    if not compute.size:
        raise ValueError("compute is empty: give a row per step, an entry per worker")
    whole_number("servers", servers)
    events, run, last = Events(), Run([], []), len(compute) - 1
    up, down, workers = Queue(events), Queue(events), range(compute.shape[1])
    pull = nbytes * link.beta, nbytes * link.beta / servers  # at a worker, at a server
    push = tuple(pushed * seconds for seconds in pull)
    arrived, back, compute = [], [], compute.tolist()

    def begin(worker, step):
        events.after(compute[step][worker], send, up, push, arrive, worker, step)

    def send(queue, seconds, action, *args):
        """A message through a server's link; `action` when it has arrived."""
        at_worker, at_server = seconds
        end = max(queue.serve(at_server), events.now + at_worker)
        events.at(end + link.alpha, action, *args)

    def arrive(worker, step):
        run.updates.append(worker)
        arrived.append(worker)
        if asynchronous or len(arrived) == len(workers):
            for other in arrived:
                send(down, pull, receive, other, step)
            arrived.clear()

    def receive(worker, step):
        back.append(worker)
        everybody = len(back) == len(workers)
        if everybody:
            back.clear()
        if step == last if asynchronous else everybody:
            run.ends.append(events.now)
        if step < last and (everybody or not barrier):
            for one in workers if barrier else [worker]:
                begin(one, step + 1)

    for worker in workers:
        begin(worker, 0)
    events.run()
    return run


def tickets(updates):
    """The numbers that each worker's updates have, for `kvstore.staleness`.

    `updates`: as in a `Run`, in which each worker occurs. A list per worker, from 1.
    """
    drawn = [[] for _ in range(max(updates) + 1)]
    for number, worker in enumerate(updates, start=1):
        drawn[worker].append(number)
    return drawn


def _naive(ready, nbytes, link):
    # Device 0 takes the arrays in order, and then sends the sum in the same order.
    message, now, done = link.seconds(nbytes), ready[0], ready.copy()
    for other in ready[1:]:
        now = max(now, other) + message
    done[1:] = now + message * numpy.arange(1, ready.size)
    done[0] = done[-1]
    return done


def _tree(ready, nbytes, link):
    message, rounds = link.seconds(nbytes), tree(ready.size)
    for pairs in map(numpy.array, rounds):
        child, parent = pairs.T
        both = numpy.maximum(ready[child], ready[parent]) + message
        ready[child] = ready[parent] = both
    for pairs in map(numpy.array, reversed(rounds)):
        child, parent = pairs.T
        ready[parent] = numpy.maximum(ready[parent], ready[child]) + message
        ready[child] = ready[parent]
    return ready


def _ring(ready, nbytes, link):
    """2(k − 1) rounds of tᵢ = max(tᵢ, tᵢ₋₁) + c, without going through them.

    After r rounds tᵢ is the maximum of the r + 1 devices behind i, plus r·c. Maxima of
    2, 4, 8 … devices are made from those before: each step doubles the window.
    """
    k = ready.size
    rounds, window = 2 * (k - 1), 1
    while window < k:  # after k − 1 rounds everybody has heard of everybody
        ready = numpy.maximum(ready, numpy.roll(ready, min(window, k - window)))
        window *= 2
    return ready + rounds * link.seconds(nbytes / k)


def _network(ready, nbytes, link, chunks=1):
    # A switch sends a chunk's sum down when the last device has sent its own up.
    ready[:] = ready.max() + (chunks + 1) * link.seconds(nbytes / chunks)
    return ready


_FINISH = {"naive": _naive, "tree": _tree, "ring": _ring, "network": _network}
