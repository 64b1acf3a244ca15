"""Which rank is missing from which call, from the recorded calls of all ranks.

    rank 0   allreduce 1   allreduce 2   barrier 3       waits
    rank 1   allreduce 1   allreduce 2                   is missing from call 3
    rank 2   allreduce 1   allreduce 2   barrier 3       waits

Ranks meet by number: the third call of one is the third of all. On a store they meet
key by key, in the third push of a key.
"""

import time
from collections import defaultdict
from dataclasses import dataclass

#: Seconds without a heartbeat after which a process counts as stopped or ended; a rank
#: is silent if its last one is so much older than the newest of all ranks.
SILENCE = 1.2


@dataclass(frozen=True)
class Call:
    """A call of `rank`: number `number`, from 1, among its calls of `meeting`.

    `meeting`: what is counted: "call", all of a ring, or "push 3", one operation on one
    key of a store. `op`, `nbytes`, `shape`: the operation, its bytes, and shape and
    type as text; `where`: file, line and function. `time`: when it began, seconds
    since 1970. `state`: "begun", "ended" or "failed".
    """

    rank: int
    number: int
    op: str
    nbytes: int = 0
    shape: str = ""
    where: str = ""
    meeting: str = "call"
    time: float = 0.0
    state: str = "begun"

    @property
    def name(self):
        """'call 7', or 'push 3 number 7' on a store."""
        return f"{self.meeting}{' number' * (self.meeting != 'call')} {self.number}"

    @property
    def what(self):
        """All that must be equal on all ranks."""
        return self.op, self.nbytes, self.shape

    def __str__(self):
        size = f" of {self.nbytes:,} bytes, {self.shape}," if self.nbytes else ""
        return f"{self.op}{size} at {self.where or '?'}"


@dataclass(frozen=True)
class Life:
    """The last heartbeat of a rank.

    `time`: of the heartbeat, seconds since 1970. `where`: the line that its program
    executed then. `oldest`: since when all of its calls are kept.
    """

    time: float
    where: str
    oldest: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """`ranks` that are missing from a call, make a different one, or are silent in it.

    `kind`: "missing", "different" or "silent". `call`: the `Call` that another rank
    made there; any rank's if "silent", or if none is known to be right. `text`: the
    verdict in words.
    """

    kind: str
    ranks: tuple
    call: Call
    text: str

    def __str__(self):
        return self.text


def what_happened(calls, num_ranks, lives=None):
    """Return the first call in which ranks are missing, differ or are silent.

    `calls`: the `Call`s of all ranks, in any order. `lives`: the `Life` of each rank,
    a dict, if known. Returns a `Verdict`, or None if all ranks have made the same
    calls and none is silent in one that has not ended.

    Where calls differ, the ranks outside the largest group are named; if several groups
    are the largest, those whose call is not the one that followed the same call before;
    else all.
    Developed in the chapter *Which rank, which call?*.
    """
    meetings, absent = _meetings(calls, lives or {}), []
    for made in meetings:
        missing = [rank for rank in range(num_ranks) if rank not in made]
        if not absent and len({call.what for call in made.values()}) > 1:
            return _different(made, calls)
        if missing:
            absent.append((made, missing))
    if absent:
        return _of_absent(absent, calls, lives or {})
    return _silent(meetings, lives or {})


def _meetings(calls, lives):
    """Return the calls that belong together, a dict by rank each, in order of time.

    A rank keeps only its last calls. Nothing is known of those before, so the other
    ranks' parts of them are left out.
    """
    first = defaultdict(lambda: float("inf"))  # number kept, by rank and meeting
    for call in calls:
        key = call.rank, call.meeting
        first[key] = min(first[key], call.number)
    cut = [rank for rank, life in lives.items() if life.oldest]

    def known(call, rank):
        number = first[rank, call.meeting]
        return call.number >= number or (
            number == float("inf") and call.time > lives[rank].oldest)

    found = defaultdict(dict)
    for call in sorted(calls, key=lambda call: call.time):
        if all(known(call, rank) for rank in cut):
            found[call.meeting, call.number][call.rank] = call
    return [*found.values()]


def _of_absent(absent, calls, lives):
    """Return the verdict, if ranks are missing from several calls of a store.

    The ranks may wait for each other: some are missing from one key, some from another.
    The verdict is on the call from which the fewest ranks are missing; of two such
    calls, on the one that followed the same call earlier.
    """
    def order(item):
        made, missing = item
        first = min(made.values(), key=lambda call: call.time)
        return len(missing), _usual(calls, first) != (first.meeting, first.what)

    first, *others = sorted(absent, key=order)
    for other in others:
        if order(other) == order(first) and {*other[0]} & {*first[1]}:
            return _crossed(first[0], other[0])
    return _missing(*first, calls, lives)


def _crossed(*both):
    parts = [f"    {_ranks(made)} in {_first(made).name}, {_first(made)}"
             for made in both]
    ranks = sorted({rank for made in both for rank in made})
    return Verdict("different", tuple(ranks), _first(both[0]),
                   "\n".join(["ranks wait for each other:", *parts]))


def _first(made):
    return next(iter(made.values()))


def _missing(made, missing, calls, lives):
    call = _first(made)
    lines = [f"{_ranks(missing)} missing from {call.name}, in which {_ranks(made)} "
             + f"waiting: {call}"]
    for rank in missing:
        own = [c for c in calls if c.rank == rank]
        last = max(own, key=lambda c: c.time) if own else None
        before = (f"made {last.name} last, {last}" if own else
                  "has recorded no call")
        lines.append(f"rank {rank} {before}{_stands(lives.get(rank))}")
        lines += _slip(own, [c for c in calls if c.rank == call.rank])
    return Verdict("missing", (*missing,), call, "\n".join(lines))


def _stands(life):
    if life is None:
        return ""
    silent = time.time() - life.time
    state = (f" has been silent for {silent:.0f} s; it stood" if silent > SILENCE else
             " stands")
    return f"; it{state} at {life.where}"


def _different(made, calls):
    groups = defaultdict(list)
    for rank, call in sorted(made.items()):
        groups[call.what].append(rank)
    sizes = sorted(map(len, groups.values()))
    right = max(groups, key=lambda what: len(groups[what]))
    if sizes[-1] == sizes[-2]:
        _, right = _usual(calls, made[min(made)]) or (None, None)
    odd = sorted(rank for what, ranks in groups.items() if what != right
                 for rank in ranks)
    parts = [f"    {_ranks(ranks)} in {made[ranks[0]]}" for ranks in groups.values()]
    call = made[groups.get(right, [min(made)])[0]]
    text = "\n".join([f"ranks differ in {call.name}:", *parts])
    if right in groups:
        text += f"\nso {_ranks(odd)} wrong"
    return Verdict("different", tuple(odd), call, text)


def _usual(calls, call):
    """Return (meeting, what) of the call that followed the one before `call`."""
    def key(made):
        return made.meeting, made.what, made.where

    own = sorted((c for c in calls if c.rank == call.rank), key=lambda c: c.time)
    *earlier, before = own[: own.index(call)] or [call]
    for i in reversed(range(len(earlier))):
        if key(earlier[i]) == key(before):
            return own[i + 1].meeting, own[i + 1].what
    return None


def _slip(own, other):
    """Return a line on an earlier call that one of two ranks made and the other did
    not.

    If both make the same calls again and again, a call that is left out is noticed only
    at the end. The source lines of the calls show it earlier.
    """
    both = {(c.meeting, c.number) for c in own} & {(c.meeting, c.number) for c in other}
    start = min((c.time for c in other if (c.meeting, c.number) in both), default=0)
    begin = min((c.time for c in own if (c.meeting, c.number) in both), default=0)
    mine = [c for c in sorted(own, key=lambda c: c.time) if c.time >= begin]
    theirs = [c for c in sorted(other, key=lambda c: c.time) if c.time >= start]

    def keys(made):
        return [(c.meeting, c.what, c.where) for c in made]

    for i, (a, b) in enumerate(zip(keys(mine), keys(theirs))):
        if a != b:
            rest = len(mine) - i
            if keys(mine[i:]) == keys(theirs[i + 1 : i + 1 + rest]):
                left_out = theirs[i]
                return [f"before, unlike rank {left_out.rank}, it left out "
                        + f"{left_out.name}, {left_out}"]
            return []
    return []


def _silent(meetings, lives):
    """Return the verdict if ranks in an unfinished call have no new heartbeat."""
    newest = max((life.time for life in lives.values()), default=0)
    silent = [rank for rank, life in sorted(lives.items())
              if newest - life.time > SILENCE and life.where != "its end"]
    for made in meetings:
        call = _first(made)
        if silent and any(c.state != "ended" for c in made.values()):
            text = f"all ranks are in {call.name}, {call}, and {_ranks(silent)} silent"
            for rank in silent:
                stands = _stands(lives[rank])
                alone = len(silent) == 1
                text += stands if alone else f"\nrank {rank}{stands[len('; it'):]}"
            return Verdict("silent", tuple(silent), call, text)
    return None


def _ranks(ranks):
    ranks = sorted(ranks)
    if len(ranks) == 1:
        return f"rank {ranks[0]} is"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]} are"
