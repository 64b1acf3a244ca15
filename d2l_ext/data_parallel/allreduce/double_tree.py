"""Allreduce in two binary trees: each carries half of the array.

A single tree leaves half of the links idle: its leaves send one array and receive one.
In a double tree, a device with children in one tree is a leaf in the other.
"""

from ...checks import whole_number
from ..traffic import checked, rounds, send, spans
from .algorithm import Algorithm, Schedule, reverse
from .ring_of_chunks import cut


@checked
def allreduce_double_tree(data, chunks=1):
    """Allreduce as `allreduce` does; a device sends at most two arrays, for any k, if
    their size is even.

        allreduce_double_tree(data, chunks=8)

    `chunks`: the number of chunks of each half, default 1, which follow one another up
    the trees and then down (pipelined): 4(chunks + ⌊log₂ k⌋ − 1) rounds, for k > 2, two
    of them without a message for some k, such as 8.
    `data` and errors: as in `allreduce`; `ValueError` for fewer than one chunk.
    Source: Sanders, Speck and Träff (2009); NCCL has had such trees since 2.4.
    Developed in the chapter *Halving and doubling*.
    """
    whole_number("chunks", chunks)
    parts = [[cut(half, chunks) for half in cut(x, 2)] for x in data]
    upwards = schedule(len(data), chunks)
    for messages in rounds(upwards):
        for tree, chunk, child, above in messages:
            arrived = send(parts[child][tree][chunk], data[above].ctx)
            parts[above][tree][chunk] += arrived
    for messages in rounds(reversed(upwards)):
        for tree, chunk, child, above in messages:
            send(parts[above][tree][chunk], parts[child][tree][chunk])


def schedule(k, chunks):
    """Return the messages of each round on the way up: (tree, chunk, child, parent).

    No device sends or receives two of them in one round: its edges take turns, in even
    and odd rounds. A chunk moves up when all devices below have sent it.
    """
    pair, turn = trees(k), turns(trees(k))
    num_turns = max(turn.values(), default=-1) + 1
    slots = [[] for _ in range(num_turns * (chunks + k.bit_length() - 2))]
    for tree, child in turn:
        place = (child + tree) % k + 1
        height = (place & -place).bit_length() - 1
        for chunk in range(chunks):
            slot = num_turns * (chunk + height) + turn[tree, child]
            slots[slot].append((tree, chunk, child, pair[tree][child]))
    return slots


def turns(pair):
    """Return the turn, 0 or 1, of each edge (tree, child): edges with the same sender
    or the same receiver differ.

    A device sends on at most two edges and receives on at most two. So conflicting
    edges form paths and even cycles, along which the turns alternate.
    """
    found = {}
    for first in ((tree, child) for tree in (0, 1) for child in pair[tree]):
        todo = [(first, 0)]
        while todo:
            (tree, child), turn = todo.pop()
            if (tree, child) not in found:
                found[tree, child] = turn
                above = pair[tree][child]
                near = [(tree, c) for c in pair[tree] if pair[tree][c] == above]
                near += [(1 - tree, child)] if child in pair[1 - tree] else []
                todo += [(edge, 1 - turn) for edge in near]
    return found


def trees(k):
    """Return the double binary tree: two trees, each a dict from a device to its
    parent.

    k = 7           3                       2
                1       5       and     0       4
              0   2   4   6           6   1   3   5

    In the first tree the odd devices have children. The second is the first with each
    device moved one place on, so only even ones have them. Places are numbered 1 … k
    from left to right; a place's lowest set bit is its height. The parent of a place is
    its neighbour one level higher or, where that is beyond k, the place without its
    lowest set bit.
    """
    found = [{}, {}]
    for place in range(1, k + 1):
        low = place & -place
        above = place - low | 2 * low
        if above > k:
            above = place - low
        for n, tree in enumerate(found, 1):
            if above:  # else it is the root
                tree[(place - n) % k] = (above - n) % k
    return found


def whole_halves(k):
    """Return the messages of `schedule` with halves in one chunk, as a `Schedule`."""
    add = [[(i, j, tree, 1) for tree, _, i, j in row] for row in schedule(k, 1)]
    return Schedule(2, add, reverse(add))


def cost(k, chunks):
    """Return 4(chunks + ⌊log₂ k⌋ − 1) rounds of a chunk of a half; k = 2: 2·chunks."""
    count = 2 * chunks if k == 2 else 4 * (chunks + k.bit_length() - 2)
    return count, count / (2 * chunks)


def sent(k, size):
    """Return what is sent: each edge of each tree has its half up and the sum down."""
    halves = zip(trees(k), spans(size, 2))
    up = [(*edge, b - a) for tree, (a, b) in halves for edge in tree.items()]
    return up + [(j, i, elements) for i, j, elements in up]


ALGORITHM = Algorithm("double tree", allreduce_double_tree, whole_halves, cost, sent,
                      chunked=True)
