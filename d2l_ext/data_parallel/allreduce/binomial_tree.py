"""Allreduce in a binomial tree: sums move to device 0 in pairs, and back."""

from ..traffic import checked, rounds, send
from .algorithm import Algorithm, Schedule, reverse


@checked
def allreduce_tree(data):
    """Allreduce as `allreduce` does, in 2⌈log₂ k⌉ rounds instead of 2(k − 1).

    No device is busier than device 0, which sends and receives ⌈log₂ k⌉ whole arrays.
    `data` and errors: as in `allreduce`. Source: Thakur, Rabenseifner and Gropp (2005).
    Developed in the chapter *Allreduce*.
    """
    for pairs in rounds(tree(len(data))):
        for child, parent in pairs:
            data[parent] += send(data[child], data[parent].ctx)
    for pairs in rounds(reversed(tree(len(data)))):
        for child, parent in pairs:
            send(data[parent], data[child])


def tree(k):
    """Return the messages on the way to device 0: a list of (child, parent) per round.

    k = 6     0   1   2   3   4   5
    round 1   0 ← 1   2 ← 3   4 ← 5
    round 2   0 ←———— 2       4
    round 3   0 ←———————————— 4
    """
    strides = [2**b for b in range((k - 1).bit_length())]
    return [
        [(parent + s, parent) for parent in range(0, k - s, 2 * s)] for s in strides
    ]


def whole_arrays(k):
    """Return the messages of `tree`, and the same ones back, as a `Schedule`."""
    add = [[(child, parent, 0, 1) for child, parent in pairs] for pairs in tree(k)]
    return Schedule(1, add, reverse(add))


ALGORITHM = Algorithm("tree", allreduce_tree, whole_arrays)
