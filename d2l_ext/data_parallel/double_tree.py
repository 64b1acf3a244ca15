"""The double binary tree: two trees, each for a half of the array.

A tree alone leaves half of the links idle: its leaves send one array and receive one.
Here a device that has children in one tree is a leaf in the other.
"""

from ..checks import whole_number
from .allreduce import cut
from .traffic import checked, parent, rounds, send


@checked
def allreduce_double_tree(data, chunks=1):
    """The same as `allreduce`, with two arrays at most sent by a device, for any k.

        allreduce_double_tree(data, chunks=8)

    `chunks`: cut each half into so many, default 1, which follow one another up the
    trees and then down (pipelined): 4(chunks + ⌊log₂ k⌋ − 1) rounds, for k > 2.
    `data` and errors: as in `allreduce`; `ValueError` for fewer chunks than one.
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


def trees(k):
    """Two trees of k devices, each a dict from a device to its parent.

    k = 7           3                       2
                1       5       and     0       4
              0   2   4   6           6   1   3   5

    In the first, odd devices have children. The second is the first with each device
    one place on, so even ones have them.
    """
    above = {place: parent(place, k) for place in range(1, k + 1)}
    return [
        {(place - n) % k: (up - n) % k for place, up in above.items() if up}
        for n in (1, 2)
    ]


def schedule(k, chunks):
    """The messages of each round on the way up: (tree, chunk, child, parent).

    No device sends two of them in a round, or receives two: of its edges each has a
    turn, even rounds or odd ones. A chunk goes on when all below have sent it.
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
    """0 or 1 for each edge, (tree, child): others of its sender or receiver differ.

    A device has two edges to send on and two to receive from at most. So edges that
    exclude one another form paths and even circles, along which turns alternate.
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
