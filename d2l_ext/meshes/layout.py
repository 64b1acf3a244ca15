"""Where an array lies on a mesh, and the moves from one layout to another.

A layout has a word for each axis of the array, and one for each sum that is owed:

    "data . tensor"    the first axis is cut along data, the last along tensor
    ". +tensor"        whole; the sum of a tensor group's arrays is the array
    ". @pipeline=1"    whole, and only on the devices with this coordinate

Along a mesh axis that no word names, all devices hold the same values.
"""

from dataclasses import dataclass
from math import prod

#: A move along mesh axis `along`: kind, and the array's axes that it joins and cuts.
KINDS = ("keep", "slice", "reduce-scatter", "all-to-all", "allreduce", "send",
         "allgather")


@dataclass(frozen=True)
class Layout:
    """`cut[i]`: the mesh axis that cuts axis i, or None. `owed`: sums still to do.

    `at`: pairs of a mesh axis and the only coordinate on it that has the array.
    """

    cut: tuple
    owed: frozenset = frozenset()
    at: frozenset = frozenset()

    def __str__(self):
        words = [axis or "." for axis in self.cut]
        words += [f"+{axis}" for axis in sorted(self.owed)]
        return " ".join([*words, *(f"@{axis}={i}" for axis, i in sorted(self.at))])

    def place(self, along):
        """Return the array's axis that the mesh axis `along` cuts, or None."""
        return self.cut.index(along) if along in self.cut else None

    def after(self, move):
        """Return the layout when a `move`, (kind, along, from, to), is done."""
        kind, along, start, stop = move
        if kind in ("keep", "send"):
            at = self.at - {(along, start)} | {(along, stop)}
            return Layout(self.cut, self.owed, at)
        cut = list(self.cut)
        if start is not None:
            cut[start] = None
        if stop is not None:
            cut[stop] = along
        done = {along} if "reduce" in kind else set()
        return Layout(tuple(cut), self.owed - done, self.at)

    def share(self, shape, sizes):
        """Return the shape of each device's part of an array of `shape`."""
        return tuple(n // sizes.get(axis, 1) for n, axis in zip(shape, self.cut))


def parse(text, shape, sizes, name):
    """Return the `Layout` that `text` describes, for the array `name` of `shape`.

    `sizes`: the mesh's lengths by axis. Raises `ValueError`, with the name, for an
    unknown mesh axis, one that is used twice, a coordinate beyond its length, a
    wrong number of axes, and an axis that cannot be cut evenly.
    """
    words = text.split()
    cut = tuple(None if w == "." else w for w in words if w[0] not in "+@")
    owed = [w[1:] for w in words if w[0] == "+"]
    at = [w[1:].partition("=")[::2] for w in words if w[0] == "@"]
    used = [*filter(None, cut), *owed, *(axis for axis, _ in at)]
    if len(cut) != len(shape):
        raise ValueError(f"{name} has {len(shape)} axes, and {text!r} names {len(cut)}")
    if {*used} - {*sizes} or len({*used}) < len(used):
        raise ValueError(f"{name}: {text!r} must name axes of the mesh, "
                         f"{', '.join(sizes)}, and none of them twice")
    for axis, place in at:
        if place not in map(str, range(sizes[axis])):
            raise ValueError(f"{name}: {text!r} must give {axis} a coordinate from 0 "
                             f"to {sizes[axis] - 1}, not {place or 'none'}")
    at = frozenset((axis, int(place)) for axis, place in at)
    layout = Layout(cut, frozenset(owed), at)
    check_divisible(layout, shape, sizes, name)
    return layout


def check_divisible(layout, shape, sizes, name):
    """Raise `ValueError` unless the axes of `shape` can be cut evenly."""
    for i, (n, axis) in enumerate(zip(shape, layout.cut)):
        if axis and n % sizes[axis]:
            raise ValueError(
                f"{name}: axis {i} has {n} elements, which {axis}'s {sizes[axis]} "
                "devices cannot share evenly: pad it, or leave it whole"
            )


def moves(start, stop):
    """Return the moves from layout `start` to `stop`: a list of (kind, along, from,
    to).

        moves(Layout(("t", None)), Layout((None, "t")))  # [("all-to-all", "t", 0, 1)]

    One row per state along a mesh axis, one column per state wanted:

                 whole         cut elsewhere     owed
        whole    —             slice             impossible
        cut      allgather    all-to-all        impossible
        owed     allreduce    reduce-scatter    —

    Moves that make an array smaller come first. Raises `ValueError` if none lead there.
    Developed in the chapter *Say where it lies*.
    """
    if not possible(start, stop):
        raise ValueError(f"{stop} cannot be made from {start}, which owes no such sum "
                         "or lies elsewhere")
    found = []
    while start != stop:
        able = [move for move in _wanted(start, stop)
                if move[0] in ("keep", "send") or move[3] is None
                or start.cut[move[3]] is None]
        # Two axes that change places: one of them must be whole in between.
        move = min(able, key=lambda move: KINDS.index(move[0]), default=None) or next(
            ("allgather", axis, start.place(axis), None)
            for axis, _ in zip(start.cut, stop.cut) if axis and axis not in start.owed
            and stop.place(axis) != start.place(axis))
        found.append(move)
        start = start.after(move)
    return found


def possible(start, stop):
    """Return whether moves lead from `start` to `stop`: no new sum, no copy."""
    here, there = dict(start.at), dict(stop.at)
    new = {*there} - {*here}
    return not (stop.owed - start.owed or {*here} - {*there}
                or new & {*start.cut, *start.owed})


def _wanted(start, stop):
    here = dict(start.at)
    for along, place in sorted(stop.at - start.at):
        yield "send" if along in here else "keep", along, here.get(along), place
    for along in sorted({*start.cut, *stop.cut, *start.owed} - {None}):
        i, j = start.place(along), stop.place(along)
        if along in start.owed and along not in stop.owed:
            yield ("allreduce" if j is None else "reduce-scatter"), along, None, j
        elif along not in start.owed and i != j:
            kind = "slice" if i is None else "allgather" if j is None else "all-to-all"
            yield kind, along, i, j


def elements(kind, k, local):
    """Return the elements each of k devices sends to move parts of `local` elements.

    An allreduce counts as if k divided them.
    """
    return {"slice": 0, "keep": 0, "send": local, "allgather": (k - 1) * local,
            "allreduce": 2 * (k - 1) * local // k}.get(kind, (k - 1) * local // k)


def price(start, stop, shape, sizes):
    """Return the elements that a device sends on the way from one layout to another."""
    total = 0
    for move in moves(start, stop):
        total += elements(move[0], sizes[move[1]], prod(start.share(shape, sizes)))
        start = start.after(move)
    return total


def dual(move, owed):
    """Return the moves of the gradient in backward, for a `move` in forward: a list, in
    order.

    `owed`: the mesh axes along which the gradient arrives as summands, because the
    devices did different work with equal values.

        forward                          backward
        allgather      cut → whole      reduce-scatter if owed, else slice
        reduce-scatter  owed → cut       allgather
        allreduce      owed → whole     allreduce if owed, else nothing
        all-to-all      cut → cut        all-to-all, the other way
        slice           whole → cut      allgather
        send            there            send, the other way

    Raises `ValueError` for an array that lies everywhere and is used in one place.
    Developed in the chapter *Say where it lies*.
    """
    kind, along, start, stop = move
    if kind == "keep":
        raise ValueError(f"the array lies on all of {along}, but only @{along}={stop} "
                         "uses it: give it that layout")
    back = {"all-to-all": "all-to-all", "send": "send", "reduce-scatter": "allgather",
            "slice": "allgather",
            "allgather": "reduce-scatter" if along in owed else "slice",
            "allreduce": "allreduce" if along in owed else None}[kind]
    return [(back, along, stop, start)] if back else []
