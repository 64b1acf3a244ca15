"""Allreduce on many devices: halving and doubling, and the double binary tree.

Halving has the ring's bytes in a logarithm of rounds. In the first a device swaps
halves of the array with a partner, in the next quarters, then eighths: each sends what
the other keeps. Then the same way back.

A tree alone leaves half of the links idle: its leaves send one array and receive one.
In a double tree each of two trees has a half of the array, and a device that has
children in one is a leaf in the other.
"""

from mxnet import np

from ..checks import whole_number
from .allreduce import cut
from .traffic import checked, cuts, rounds, send, trees


@checked
def allreduce_halving(data, pieces=1):
    """The same as `allreduce`, with the ring's bytes in 2·log₂ k rounds.

        allreduce_halving(data, pieces=32)

    If k is no power of two, the devices beyond p, the largest one, give their whole
    array to one of the first p and get the sum back: two rounds more, in which those
    send and receive an array more.
    `pieces`: cut the array into so many, default 1, and sum piece by piece, each in
    rounds of its own. A piece that fits into a cache is read from memory once.
    `data` and errors: as in `allreduce`; `ValueError` for fewer pieces than one.
    Source: Thakur, Rabenseifner and Gropp (2005). Developed in the chapter *Halving
    and doubling*.
    """
    whole_number("pieces", pieces)
    for piece in zip(*(cut(x, pieces) for x in data)):
        fold(piece)


def fold(data):
    """Sum the arrays of k devices, by way of the first p, a power of two."""
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
    """With whom each of p devices swaps in the halving, round by round.

    p = 8       0   1   2   3   4   5   6   7    device
    round 1     4   5   6   7   0   1   2   3    a half of the array
    round 2     2   3   0   1   6   7   4   5    a quarter
    round 3     1   0   3   2   5   4   7   6    an eighth
    """
    return [[i ^ 2**b for i in range(p)] for b in reversed(range(p.bit_length() - 1))]


def place(i, d, edges):
    """Where the d chunks around device i are, within the 2d chunks around it."""
    first, own = edges[i // (2 * d) * 2 * d], i // d * d
    return slice(edges[own] - first, edges[own + d] - first)


def halve(data):
    """Leave device i of p, a power of two, with chunk i of the sum; return all p.

    `data` is only read: a partial sum travels in the array in which a half arrives.
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
    """Give all p devices all p chunks: device i begins with `sums[i]`, chunk i.

    To the engine an array is one variable, so what is to be passed on is put together
    in arrays of its own, and only in the last round in `data`.
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
