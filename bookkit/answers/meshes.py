"""Answers to exercises of the part on meshes."""

import numpy

from .question import Question, Task


def groups(lengths, axis):
    """Partners are as far apart as the lengths behind the axis say."""
    apart, size = int(numpy.prod(lengths[axis + 1 :])), lengths[axis]
    firsts = [d for d in range(int(numpy.prod(lengths))) if d // apart % size == 0]
    return [[d + i * apart for i in range(size)] for d in firsts]


def judge_groups(function):
    for lengths, axis in [((2, 2, 2), 0), ((2, 3, 4), 1), ((2, 3, 4), 2), ((5,), 0)]:
        found = sorted(sorted(group) for group in function(lengths, axis))
        if found != sorted(groups(lengths, axis)):
            return f"groups({lengths}, {axis}) is {found[:3]} …"
    return ""


def sums(x, dy, w, groups):
    """Outputs over tensor's groups, gradients over data's."""
    return tuple(
        [sum(parts[j] for j in next(g for g in groups[axis] if i in g))
         for i in range(len(x))]
        for axis, parts in (("tensor", [a @ b for a, b in zip(x, w)]),
                            ("data", [a.T @ b for a, b in zip(x, dy)]))
    )  # fmt: skip


def sums_over_all(x, dy, w, groups):
    """One sum for everybody: what a mesh is against."""
    return sums(x, dy, w, {axis: [[*range(len(x))]] for axis in groups})


def judge_sums(function):
    rng = numpy.random.RandomState(3)
    X, W, D = (rng.randint(9, size=s) for s in ((4, 6), (6, 2), (4, 2)))
    mesh = {"data": groups((2, 3), 0), "tensor": groups((2, 3), 1)}
    rows, columns = (lambda i: slice(2 * (i // 3), 2 * (i // 3) + 2),
                     lambda i: slice(2 * (i % 3), 2 * (i % 3) + 2))  # fmt: skip
    x = [X[rows(i), columns(i)] for i in range(6)]
    y, dw = function(x, [D[rows(i)] for i in range(6)],
                     [W[columns(i)] for i in range(6)], mesh)  # fmt: skip
    wrong = [sum((y[i] != (X @ W)[rows(i)]).any() for i in range(6)),
             sum((dw[i] != (X.T @ D)[columns(i)]).any() for i in range(6))]  # fmt: skip
    if any(wrong):
        return f"Outputs are wrong on {wrong[0]} of 6 devices, gradients on {wrong[1]}."
    return ""


# ---- two_links ----


def ring_order(hosts):
    """The devices of a host one after another."""
    return sorted(range(len(hosts)), key=hosts.__getitem__)


def _judge_ring_order(function):
    for hosts in ([0, 1, 0, 1, 1, 0], [2, 0, 1, 0, 2, 1, 1, 0]):
        found = list(function(hosts))
        if sorted(found) != [*range(len(hosts))]:
            return f"Hosts {hosts}: {found} does not have each device once."
        crossed = sum(hosts[i] != hosts[j] for i, j in zip(found, found[-1:] + found))
        if crossed > len({*hosts}):
            said = f"Hosts {hosts}: {found} crosses {crossed} times"
            return f"{said}; {len({*hosts})} are enough."
    return ""


def quicker(hosts, devices, cards, inner, outer):
    """'ring' or 'hierarchy', by the bytes over `cards` cards of each host."""
    k = hosts * devices
    between = 2 * (hosts - 1) / hosts * outer / cards
    ours = 2 * (devices - 1) / devices * inner + between
    return "hierarchy" if ours < 2 * (k - 1) / k * outer else "ring"


def _judge_quicker(function):
    for case in ((2, 4, 4, 1, 10), (2, 4, 1, 1, 10), (16, 4, 1, 1, 10),
                 (16, 4, 2, 1, 10), (16, 4, 2, 9, 10)):  # fmt: skip
        found, right = function(*case), quicker(*case)
        if found != right:
            return f"quicker{case}: {right} takes less, and not {found}."
    return ""


def levels(nbytes, groups):
    """Seconds with any number of levels, each on what the one inside leaves."""
    total = 0
    for k, alpha, beta in groups:
        total += 2 * (k - 1) * (alpha + nbytes / k * beta)
        nbytes /= k
    return total


def _judge_levels(function):
    host, rack, hall = (8, 0, 1), (4, 0, 10), (16, 2, 40)
    for groups in ([host], [host, rack], [host, rack, hall]):
        found, right = function(3200, groups), levels(3200, groups)
        if abs(found - right) > 1e-6 * right:
            return f"3,200 bytes, {groups}: {found:g} seconds, and not {right:g}."
    return ""


QUESTIONS = {
    ("mesh", 1): Question(
        "the coordinates of device 13: stage, replica, share",
        [1, 2, 1],
        [([1, 1, 2], "That is the place with the two inner axes exchanged.")],
    ),
    ("mesh", 2): Question(
        "a number of tokens",
        4608,
        [(36_864, "That is for whole layers: eight devices share them.")],
    ),
    ("mesh", 3): Task(
        "your function groups",
        groups,
        [(lambda lengths, axis: groups(lengths[::-1], len(lengths) - 1 - axis),
          "groups((2, 2, 2), 0) is [[0, 1], [2, 3], [4, 5]] …")],
        judge=judge_groups,
    ),
    ("mesh", 4): Task(
        "your function step",
        sums,
        [(sums_over_all, "Outputs are wrong on 6 of 6 devices, gradients on 6."),
         (lambda x, dy, w, groups: sums(x, dy, w, {"data": groups["tensor"],
                                                   "tensor": groups["data"]}),
          "Outputs are wrong on 6 of 6 devices, gradients on 6.")],
        judge=judge_sums,
    ),
    ("two_links", 1): Question(
        "the megabytes that leave by one card",
        234.375,
        [
            (1875, "That is a leader's, which sends all chunks: divide by 8."),
            (1984.375, "That is one ring of all devices."),
            (117.1875, "Each chunk is summed, and then passed around: twice as many."),
        ],
        tolerance=0.01,
    ),
    ("two_links", 2): Task(
        "a function `ring_order(hosts)`", ring_order,
        [(lambda hosts: range(len(hosts)),
          "Hosts [0, 1, 0, 1, 1, 0]: [0, 1, 2, 3, 4, 5] crosses 4 times; " +
          "2 are enough.")],
        judge=_judge_ring_order,
    ),
    ("two_links", 3): Task(
        "a function `quicker(hosts, devices, cards, inner, outer)`", quicker,
        [(lambda *_: "hierarchy",
          "quicker(16, 4, 1, 1, 10): ring takes less, and not hierarchy.")],
        judge=_judge_quicker,
    ),
    ("two_links", 4): Task(
        "a function `levels(nbytes, groups)`", levels,
        [(lambda nbytes, groups: sum(levels(nbytes, [g]) for g in groups),
          "3,200 bytes, [(8, 0, 1), (4, 0, 10)]: 53600 seconds, and not 11600.")],
        judge=_judge_levels,
    ),
}  # fmt: skip
