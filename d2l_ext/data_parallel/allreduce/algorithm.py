"""What the tables, the simulator and the trainer know about each allreduce.

A file of this folder that sets `ALGORITHM` adds one: `costs.expected` counts it,
`simulator.allreduce` simulates it if it has a `schedule` and is not `chunked`, and
`d2l-ext-train --allreduce` offers it if it has `reduce`. The map of this part names the
file once a chapter uses it.
"""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Callable, NamedTuple

from ..traffic import cuts


class Schedule(NamedTuple):
    """The messages of an allreduce among k devices, round by round.

    `pieces`: the number of chunks of an array. `add`, `copy`: lists of rounds, each a
    list of messages (from, to, first chunk, number of chunks). In the rounds of `add`
    an arriving chunk is added, in those of `copy` it replaces the old one.
    """

    pieces: int
    add: list
    copy: list

    @property
    def rounds(self):
        """All rounds, in order."""
        return [*self.add, *self.copy]


@dataclass(frozen=True)
class Algorithm:
    """An allreduce under its `name`: a function, its messages, and closed forms.

    `reduce`: the function of a list of arrays; None if no device runs it. `schedule`:
    k -> `Schedule`, for one chunk if the algorithm is `chunked`; None if not all
    messages are between devices. `chunked`: the array is cut into a given number of
    chunks.

    Two closed forms spare walking the schedule, which has 33 million messages for a
    ring of 4,096 devices. `cost`: (k, chunks) -> the number of rounds, and of arrays
    sent one after another in them, for k ≥ 2. `sent`: (k, size) -> (from, to, number of
    elements) for all rounds together.
    """

    name: str
    reduce: Callable = None
    schedule: Callable = None
    cost: Callable = None
    sent: Callable = None
    chunked: bool = False

    def rounds(self, k, chunks=1):
        """Return the number of rounds, and of arrays sent one after another in them."""
        if k == 1:
            return 0, 0
        if self.cost:
            return self.cost(k, chunks)
        pieces, add, copy = self.schedule(k)
        longest = [max(number for *_, number in row) for row in (*add, *copy)]
        return len(longest), sum(longest) / pieces

    def messages(self, k, size):
        """Return the messages of all rounds: a list of (from, to, elements)."""
        if self.sent:
            return self.sent(k, size)
        schedule = self.schedule(k)
        edges = cuts(size, schedule.pieces)
        return [(i, j, edges[first + number] - edges[first])
                for row in schedule.rounds for i, j, first, number in row]


def reverse(rounds):
    """Return the same messages from the last round to the first, each one sent back."""
    return [[(j, i, *chunks) for i, j, *chunks in row] for row in reversed(rounds)]


@cache
def algorithms():
    """Return the algorithms of this folder: a sorted dict {name: `Algorithm`}."""
    files = iter_modules(import_module(__package__).__path__)
    modules = [import_module(f"{__package__}.{file.name}") for file in files]
    found = [module.ALGORITHM for module in modules if hasattr(module, "ALGORITHM")]
    return {a.name: a for a in sorted(found, key=lambda a: a.name)}
