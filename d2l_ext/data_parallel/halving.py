"""Allreduce on many devices: halving and doubling, and the double binary tree.

Halving sends the ring's bytes in a logarithmic number of rounds. In the first round a
device swaps halves of the array with a partner, then quarters, then eighths: each sends
the part that the other keeps. The same rounds in reverse order return the sum.

A single tree leaves half of the links idle: its leaves send one array and receive one.
In a double tree each tree carries half of the array, and a device with children in one
is a leaf in the other.
"""

from mxnet import np

from ..checks import whole_number
from .allreduce import cut
from .traffic import checked, cuts, rounds, send, trees


@checked
def allreduce_halving(data, pieces=1):
    """The same as `allreduce`, with the ring's bytes in 2·log₂ k rounds.

        allreduce_halving(data, pieces=32)

    With p the largest power of two up to k, each further device gives its whole array
    to one of the first p and gets the sum back: two more rounds, in which those send
    and receive one more array.
    `pieces`: the number of pieces of the array, default 1, which are summed one after
    another, each in its own rounds. A piece that fits in a cache is read from memory
    once.
    `data` and errors: as in `allreduce`; `ValueError` for fewer pieces than one.
    Source: Thakur, Rabenseifner and Gropp (2005). Developed in the chapter *Halving
    and doubling*.
    """
    whole_number("pieces", pieces)
    for piece in zip(*(cut(x, pieces) for x in data)):
        fold(piece)


def fold(data):
    """Sum the arrays of k devices by way of the first p, a power of two."""
    p = 2 ** (len(data).bit_length() - 1)
    own, extra = data[:p], data[p:]
    for others in rounds([extra] if extra else []):
        for x, other in zip(own, others):
            x += send(other, x.ctx)
    double(halve(own), own)
    for others in rounds([extra] if extra else []):
        for x, other in zip(own, others):
            send(x, other)


def partners(p):
    """The partner of each of p devices in the halving, round by round.

    p = 8       0   1   2   3   4   5   6   7    device
    round 1     4   5   6   7   0   1   2   3    a half of the array
    round 2     2   3   0   1   6   7   4   5    a quarter
    round 3     1   0   3   2   5   4   7   6    an eighth
    """
    return [[i ^ 2**b for i in range(p)] for b in reversed(range(p.bit_length() - 1))]


def place(i, d, edges):
    """The position of the d chunks of device i within the 2d chunks around them."""
    first, own = edges[i // (2 * d) * 2 * d], i // d * d
    return slice(edges[own] - first, edges[own + d] - first)


def halve(data):
    """Reduce-scatter: return p arrays, chunk i of the sum on device i.

    p is a power of two. `data` is only read: an arriving half becomes the partial sum.
    """
    p, partial, edges = len(data), data, cuts(data[0].size, len(data))
    for other in rounds(partners(p)):
        keep = [place(i, other[0], edges) for i in range(p)]
        halves = [send(partial[j][keep[i]], data[i].ctx) for i, j in enumerate(other)]
        for i, half in enumerate(halves):
            half += partial[i][keep[i]]
        partial = halves
    return partial


def double(sums, data):
    """Allgather: all p devices get all p chunks; device i begins with `sums[i]`.

    To the engine an array is one variable, so chunks that are passed on are joined in
    new arrays, and only the last round writes into `data`.
    """
    p, edges = len(data), cuts(data[0].size, len(data))
    for other in rounds(reversed(partners(p))):
        has = [place(i, other[0], edges) for i in range(p)]
        wholes = data
        if other[0] < p // 2:  # another round will pass it on
            wholes = [
                np.empty(x.size + sums[j].size, dtype=x.dtype, ctx=x.ctx)
                for x, j in zip(sums, other)
            ]
        for i, x in enumerate(sums):
            x.copyto(wholes[i][has[i]])
        for i, j in enumerate(other):
            send(sums[j], wholes[i][has[j]])
        sums = wholes


@checked
def allreduce_double_tree(data, chunks=1):
    """The same as `allreduce`; a device sends at most two arrays, for any k.

        allreduce_double_tree(data, chunks=8)

    `chunks`: the number of chunks of each half, default 1, which follow one another up
    the trees and then down (pipelined): 4(chunks + ⌊log₂ k⌋ − 1) rounds, for k > 2.
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


def schedule(k, chunks):
    """The messages of each round on the way up: (tree, chunk, child, parent).

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
    """The turn, 0 or 1, of each edge (tree, child): edges that share an end differ.

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
