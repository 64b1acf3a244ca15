"""The story of a job that loses something: its steps, losses and restarts in time.

What it can lose is a process on this machine (`Local`), or a host of a box (`Hosts`).
"""

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

from pslaunch import processes

LAUNCH = [sys.executable, "-m", "pslaunch"]
STEP = re.compile(r"worker-(\d+)\s*\| epoch (\d+)/\d+\s+step (\d+)/(\d+)")
GOES_ON = re.compile(
    r"worker-0\s*\| (?:going on from .*, step (\d+)|there is no checkpoint yet)")


@dataclass
class Story:
    """The course of a job; all times in seconds from its beginning.

    `steps`: (time, start, rank, step), a line of a worker each; starts from 1, steps
    over all epochs. `losses`: (time, name). `restarts`: when the launcher had ended
    what was left, and began again. `went_on`: the step after which a start began.
    `job`: the launcher's summary (`--json`). `seconds`: in all. `said`: the lines
    that come from no worker or server.
    """

    steps: list = field(default_factory=list)
    losses: list = field(default_factory=list)
    restarts: list = field(default_factory=list)
    went_on: dict = field(default_factory=dict)
    said: list = field(default_factory=list)
    job: dict = None
    seconds: float = 0.0

    def reached(self, start, step, rank=0):
        """Return whether this worker has done a step, in this start."""
        return any(s == start and r == rank and n >= step
                   for _, s, r, n in reversed(self.steps))

    def last_step(self, start, rank=0):
        """Return the last step of a worker in a start, 0 without any."""
        own = [n for _, s, r, n in self.steps if (s, r) == (start, rank)]
        return max(own, default=0)

    def done_again(self):
        """Return, per start, how many steps of worker 0 are done a second time."""
        return {start: max(max(map(self.last_step, range(1, start))) - step, 0)
                for start, step in self.went_on.items() if start > 1}

    def first_steps(self):
        """Return when worker 0 did its first step, per start that came so far."""
        found = {}
        for at, start, rank, _ in self.steps:
            if rank == 0:
                found.setdefault(start, at)
        return [found[start] for start in sorted(found)]


class Local:
    """Jobs on this machine, which lose processes; `signum`: by this signal."""

    def __init__(self, signum=signal.SIGKILL):
        self.signum = signum

    def popen(self, words, **options):
        """Start the launcher with these words."""
        self.launcher = subprocess.Popen([*LAUNCH, *words], **options)
        return self.launcher

    def there(self):
        """Return the running processes: {name, as 'worker 0': process id}."""
        nearest_last = reversed(processes.descendants(self.launcher.pid))
        return {name: pid for pid in nearest_last for name in [_name(pid)] if name}

    def lose(self, name):
        """Send a process the signal; return whether it was there."""
        try:
            os.kill(self.there()[name], self.signum)
        except (KeyError, ProcessLookupError):  # it has ended
            return False
        return True

    def repair(self):
        """Do nothing: nothing of this machine stays broken."""


class Hosts:
    """Jobs over ssh on the hosts of a box, `cluster`, which lose hosts."""

    def __init__(self, cluster):
        self.cluster, self.off = cluster, []

    def popen(self, words, **options):
        """Start the launcher, with ssh, on the head."""
        where = ["--launcher", "ssh", "-H", self.cluster.hosts_file]
        return self.cluster.head.popen([*LAUNCH, *where, *words], **options)

    def there(self):
        """Return the hosts that are on: a dict from names."""
        return {host.name: host for host in self.cluster.hosts if host not in self.off}

    def lose(self, name):
        """Switch a host off, so that it sends no last message; return True."""
        self.off.append(self.cluster[name])
        self.off[-1].power_off()
        return True

    def repair(self):
        """Switch all hosts on again."""
        while self.off:
            self.off.pop().power_on()


def _name(pid):
    """Return a job's process's role and rank, as 'worker 0'; None for any other."""
    node = processes.node_of(pid)
    return node and "{} {}".format(*node)


def run(place, words, lose=(), repair=None):
    """Run a job of the trainer to its end, and let it lose something on the way.

    `place`: a `Local` or `Hosts`. `words`: of the launcher, and of the
    trainer, with `--disp-batches 1`, so that each step is a line. `lose`: pairs
    (when, name), one after the other: as soon as `when(story)` is true, `name` is
    lost; if it is a function, it chooses among the names that are there. `repair`:
    a function of the story; once it is true, lost hosts are switched on again.
    """
    story, lines, left = Story(), queue.Queue(), list(lose)
    begin = time.monotonic()
    process = place.popen(["--json", *map(str, words)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    reader = threading.Thread(target=_read, args=(process.stdout, lines, begin))
    reader.start()
    with process:
        while process.poll() is None:
            story.seconds = time.monotonic() - begin
            _take(story, lines)
            if left and left[0][0](story) and _lose(story, place, left[0][1]):
                left.pop(0)
            if repair and story.losses and repair(story):
                repair = place.repair()  # None
            time.sleep(0.01)
        story.seconds = time.monotonic() - begin
        reader.join()
    _take(story, lines)
    place.repair()
    return story


def _lose(story, place, name):
    there = sorted(place.there())
    chosen = name if isinstance(name, str) or not there else name(there)
    if chosen not in there or not place.lose(chosen):
        return False
    story.losses.append((story.seconds, chosen))
    return True


def _read(pipe, lines, begin):
    for line in pipe:
        lines.put((time.monotonic() - begin, line.rstrip("\n")))


def _take(story, lines):
    """Note what was printed."""
    while not lines.empty():
        at, line = lines.get()
        step, went_on = STEP.match(line), GOES_ON.match(line)
        if step:
            rank, epoch, number, of = map(int, step.groups())
            start = len(story.restarts) + 1
            story.steps.append((at, start, rank, (epoch - 1) * of + number))
        elif went_on:
            story.went_on[len(story.restarts) + 1] = int(went_on[1] or 0)
        elif line.startswith("{"):
            story.job = json.loads(line)
        elif " | " not in line:
            story.said.append(line.replace("launch: ", "", 1))
            if "; restart " in line:
                story.restarts.append(at)
