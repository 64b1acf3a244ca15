"""From the calls of all ranks: which rank is missing in which call."""

from collections import defaultdict
from dataclasses import dataclass


@dataclass(frozen=True)
class Call:
    """A call of `rank`, its number `number` among those of `meeting`.

    `meeting`: the calls among which ranks are matched by their numbers: "call", all of
    a ring, or "push 3", one operation on one key of a store. `op`, `nbytes`, `shape`,
    `where`: the operation, its bytes and shape, texts of file and line. `time`: when it
    began, seconds since 1970. `state`: "begun", "ended" or "failed".
    """

    rank: int
    meeting: str
    number: int
    op: str
    nbytes: int = 0
    shape: str = ""
    where: str = ""
    time: float = 0.0
    state: str = "begun"

    @property
    def what(self):
        """What must be equal on all ranks."""
        return self.op, self.nbytes, self.shape

    def __str__(self):
        size = f" of {self.nbytes:,} bytes {self.shape}" if self.nbytes else ""
        return f"{self.op}{size} at {self.where}"


@dataclass(frozen=True)
class Verdict:
    """`ranks` that are missing in a call, or that make a different one.

    `kind`: "missing" or "different". `meeting`, `number`: of the call.
    """

    kind: str
    ranks: tuple
    meeting: str
    number: int
    text: str

    def __str__(self):
        return self.text


def what_happened(calls, num_ranks):
    """The first call in which ranks are missing or differ: a `Verdict`, or None.

    `calls`: the `Call`s of all ranks, in any order. Where they differ, the ranks in the
    minority are named; without one, all.
    """
    meetings = defaultdict(dict)
    for call in sorted(calls, key=lambda call: call.time):
        meetings[call.meeting, call.number][call.rank] = call
    for (meeting, number), made in meetings.items():
        groups = defaultdict(list)
        for rank, call in sorted(made.items()):
            groups[call.what].append(rank)
        missing = tuple(rank for rank in range(num_ranks) if rank not in made)
        if len(groups) > 1:
            return _different(meeting, number, made, [*groups.values()])
        if missing:
            return _missing(meeting, number, made, missing)
    return None


def _missing(meeting, number, made, missing):
    call = next(iter(made.values()))
    text = (f"{_names(missing)} missing in {meeting} {number}, in which "
            f"{_names(made)} waiting: {call}")
    return Verdict("missing", missing, meeting, number, text)


def _different(meeting, number, made, groups):
    groups.sort(key=len)
    odd = groups[0] if len(groups[0]) < len(groups[-1]) else [*made]
    parts = [f"{_names(ranks)} in {made[ranks[0]]}" for ranks in groups]
    text = f"ranks differ in {meeting} {number}: " + "; ".join(parts)
    return Verdict("different", tuple(sorted(odd)), meeting, number, text)


def _names(ranks):
    ranks = sorted(ranks)
    if len(ranks) == 1:
        return f"rank {ranks[0]} is"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]} are"
