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
}  # fmt: skip
