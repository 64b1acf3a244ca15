"""Exercises of the chapter *Data × tensor × pipeline*."""

import copy

import numpy

from ..question import Question, Task, by_cases


def line_groups(lengths, axis):
    """Return the groups of partners, the product of the inner axes' lengths apart."""
    apart = int(numpy.prod(lengths[axis + 1 :]))
    count = int(numpy.prod(lengths))
    firsts = [d for d in range(count) if d // apart % lengths[axis] == 0]
    return [[d + i * apart for i in range(lengths[axis])] for d in firsts]


def _apart_by_its_own_length(lengths, axis):
    apart, size = int(numpy.prod(lengths[axis:])), lengths[axis]
    return [[d + i * apart for i in range(size)]
            for d in range(int(numpy.prod(lengths))) if d // apart % size == 0]


def _in_sequence(lengths, axis):
    size = lengths[axis]
    return [[d + i for i in range(size)]
            for d in range(0, int(numpy.prod(lengths)), size)]


def _judge_groups(function, lengths, axis):
    found, right = (
        sorted(sorted(map(int, group)) for group in made(lengths, axis))
        for made in (function, line_groups)
    )
    if found == right:
        return ""
    if not found:
        return f"it returns no groups instead of {len(right)}, such as {right[0]}."
    first = next((f for f in found if f not in right), found[0])
    s = "" if len(found) == 1 else "s"
    return (f"it returns {len(found)} group{s}, such as {first}, instead of "
            f"{len(right)}, such as {right[0]}.")


def two_sums(x, dy, w, groups):
    """Sum the outputs over tensor's groups, and the gradients over data's."""

    def summed(parts, axis):
        total = [None] * len(parts)
        for group in groups[axis]:
            for i in group:
                total[i] = sum(parts[j] for j in group)
        return total

    outputs = summed([a @ b for a, b in zip(x, w)], "tensor")
    gradients = summed([a.T @ b for a, b in zip(x, dy)], "data")
    return outputs, gradients


def _over_all(x, dy, w, groups):
    everybody = [[*range(len(x))]]
    return two_sums(x, dy, w, {"tensor": everybody, "data": everybody})


def _only_the_first_gets_it(x, dy, w, groups):
    def summed(parts, axis):
        for first, *others in groups[axis]:
            for i in others:
                parts[first] = parts[first] + parts[i]
        return parts

    return (summed([a @ b for a, b in zip(x, w)], "tensor"),
            summed([a.T @ b for a, b in zip(x, dy)], "data"))


def _judge_sums(function, data, tensor, inner):
    rng, k = numpy.random.RandomState(3), data * tensor
    at = [divmod(i, tensor) if inner == "tensor" else divmod(i, data)[::-1]
          for i in range(k)]  # replica and share of each device
    mesh = {axis: [[i for i in range(k) if at[i][1 - a] == n]
                   for n in range((tensor, data)[a])]
            for a, axis in enumerate(("data", "tensor"))}
    X, W, D = (rng.randint(1, 9, size).astype(float) for size in
               ((2 * data, 2 * tensor), (2 * tensor, 2), (2 * data, 2)))
    rows, columns = ([slice(n[a] * 2, n[a] * 2 + 2) for n in at] for a in (0, 1))
    given = ([X[r, c].copy() for r, c in zip(rows, columns)],
             [D[r].copy() for r in rows], [W[c].copy() for c in columns])
    kept = copy.deepcopy(given)
    found = function(*given, mesh)
    if (counts := [len(parts) for parts in found]) != [k, k]:
        return f"there are {counts} outputs and gradients instead of {k} of each."
    rights = ([(X @ W)[r] for r in rows], [(X.T @ D)[c] for c in columns])
    for what, parts, right in zip(("output", "gradient"), found, rights):
        for i, (part, its) in enumerate(zip(parts, right)):
            said = f"on device {i} the {what}"
            if numpy.shape(part) != its.shape:
                return f"{said} has shape {numpy.shape(part)} instead of {its.shape}."
            if not numpy.allclose(part, its):
                a, b = next((a, b) for a, b in zip(numpy.ravel(part), numpy.ravel(its))
                            if not numpy.isclose(a, b))
                return f"{said} has {a:g} instead of {b:g}."
    same = all(map(numpy.array_equal, given, kept))
    return "" if same else "it changes its arguments."


QUESTIONS = {
    1: Question(
        "the coordinates of device 13: stage, replica, share",
        [1, 2, 1],
        [([1, 1, 2], "That has the two inner coordinates exchanged.")],
    ),
    2: Question(
        "the number of tokens",
        4608,
        [(36_864, "That is for whole layers: eight devices share them.")],
    ),
    3: Task(
        "a function `line_groups(lengths, axis)`",
        line_groups,
        [
            (lambda lengths, axis: line_groups(lengths, len(lengths) - 1 - axis),
             "Axis 0 is the outermost: partners along it are farthest apart."),
            (_apart_by_its_own_length,
             "An axis's own length does not move its partners apart."),
            (_in_sequence,
             "Partners have consecutive numbers only on the innermost axis."),
        ],
        judge=by_cases(_judge_groups, "line_groups({}, {})", [
            ([3], 0), ([2, 3], 0), ([2, 3], 1), ([2, 3, 4], 0), ([2, 3, 4], 1),
            ([2, 3, 4], 2), ([2, 1, 3], 1), ([2, 2, 3, 2], 1),
        ]),
    ),
    4: Task(
        "a function `two_sums(x, dy, w, groups)`",
        two_sums,
        [
            (_over_all,
             "That is one sum over all devices: on a mesh, a sum stays in a group."),
            (lambda x, dy, w, groups:
             two_sums(x, dy, w, {"tensor": groups["data"], "data": groups["tensor"]}),
             ("The axes are mixed up: which devices have other columns of the same "
              "examples, and which have other examples for the same weights?")),
            (_only_the_first_gets_it,
             "Only the first device of each group gets the sum. All of them need it."),
        ],
        judge=by_cases(_judge_sums, "{} replicas with {} shares each, {} innermost", [
            (1, 1, "tensor"), (1, 2, "tensor"), (2, 1, "tensor"), (2, 3, "tensor"),
            (2, 3, "data"),
        ]),
    ),
}
