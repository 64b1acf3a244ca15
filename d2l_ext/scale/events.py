"""A discrete-event simulator: what happens next, happens next, and time jumps there."""

import heapq
from math import isfinite


class Events:
    """A clock, `now` in seconds, and actions that wait for their time.

        events = Events()
        events.after(2.0, print, "two seconds later")
        events.run()

    Actions of the same time run in the order in which they were asked for, so the
    same input gives the same run, always. `handled`: how many have run.
    Developed in the chapter *A cost model*.
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

    `free`: from when on nobody is being served. `busy`: seconds of service so far.
    """

    def __init__(self, events):
        self.events, self.free, self.busy = events, 0.0, 0.0

    def serve(self, seconds):
        """Take `seconds` of service, behind all who came before; returns its end."""
        self.free = max(self.free, self.events.now) + seconds
        self.busy += seconds
        return self.free
