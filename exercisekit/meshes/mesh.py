"""Exercises of the chapter *Data × tensor × pipeline*."""

import copy

import numpy

from ..question import Question, Task, by_cases


def groups(lengths, axis):
    """Partners are as far apart as the lengths behind the axis say."""
    apart, size = int(numpy.prod(lengths[axis + 1 :])), lengths[axis]
    firsts = [d for d in range(int(numpy.prod(lengths))) if d // apart % size == 0]
    return [[d + i * apart for i in range(size)] for d in firsts]


def _judge_groups(function, lengths, axis):
    found, right = (
        sorted(sorted(map(int, group)) for group in made(lengths, axis))
        for made in (function, groups)
    )
    if found == right:
        return ""
    first = next((f for f in found if f not in right), found[0])
    return (f"it gives {len(found)}, as {first}, and not {len(right)}, as "
            f"{right[0]}.")


def step(x, dy, w, groups):
    """Outputs are summed over tensor's groups, gradients over data's."""

    def summed(parts, axis):
        total = [None] * len(parts)
        for group in groups[axis]:
            for i in group:
                total[i] = sum(parts[j] for j in group)
        return total

    y = summed([a @ b for a, b in zip(x, w)], "tensor")
    return y, summed([a.T @ b for a, b in zip(x, dy)], "data")


def _judge_step(function, data, tensor):
    rng, k = numpy.random.RandomState(3), data * tensor
    mesh = {"data": groups((data, tensor), 0), "tensor": groups((data, tensor), 1)}
    X, W, D = (rng.randint(1, 9, size).astype(float) for size in
               ((2 * data, 2 * tensor), (2 * tensor, 2), (2 * data, 2)))
    rows = [slice(i // tensor * 2, i // tensor * 2 + 2) for i in range(k)]
    columns = [slice(i % tensor * 2, i % tensor * 2 + 2) for i in range(k)]
    given = ([X[r, c].copy() for r, c in zip(rows, columns)],
             [D[r].copy() for r in rows], [W[c].copy() for c in columns])
    kept = copy.deepcopy(given)
    found = function(*given, mesh)
    if (counts := [len(parts) for parts in found]) != [k, k]:
        return f"there are {counts} outputs and gradients, and not {k} of each."
    rights = ([(X @ W)[r] for r in rows], [(X.T @ D)[c] for c in columns])
    for what, parts, right in zip(("output", "gradient"), found, rights):
        for i, (part, its) in enumerate(zip(parts, right)):
            said = f"on device {i} the {what}"
            if numpy.shape(part) != its.shape:
                return f"{said} has shape {numpy.shape(part)}, and not {its.shape}."
            if not numpy.allclose(part, its):
                return f"{said} begins with {part[0, 0]:g}, and not {its[0, 0]:g}."
    same = all(map(numpy.array_equal, given, kept))
    return "" if same else "it changes what it is given."


QUESTIONS = {
    1: Question(
        "the coordinates of device 13: stage, replica, share",
        [1, 2, 1],
        [([1, 1, 2], "That is the place with the two inner axes exchanged.")],
    ),
    2: Question(
        "a number of tokens",
        4608,
        [(36_864, "That is for whole layers: eight devices share them.")],
    ),
    3: Task(
        "your function line_groups",
        groups,
        [
            ("axis):", "axis):\n    axis = len(lengths) - 1 - axis",
             "Axis 0 is the outermost: the device number grows slowest along it."),
            ("axis + 1 :", ": axis",
             ("How far partners are apart is up to the axes inside theirs, and not to "
              "those outside.")),
            ("axis + 1 :", "axis:",
             "An axis's own length does not move its partners apart."),
            ("d // apart % size", "d % size",
             ("Where a group begins, the coordinate on the axis is 0: that is not the "
              "rest of the device number itself.")),
            ("d + i * apart", "d + i",
             "Partners have numbers in sequence only on the innermost axis."),
            ("int(numpy.prod(lengths)))", "apart)",
             ("Each place on all the other axes has a group of its own, on the outer "
              "ones, too.")),
            ("range(size)", "range(size - 1)", "The last partner of each is missing."),
        ],
        judge=by_cases(_judge_groups, "line_groups({}, {})", [
            ((3,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 3, 4), 0), ((2, 3, 4), 1),
            ((2, 3, 4), 2),
        ]),
    ),
    4: Task(
        "your function two_sums",
        step,
        [
            ("in groups[axis]", "in [[*range(len(x))]]",
             "That is one sum over everybody: on a mesh it stays in a group."),
            ("in groups[axis]", 'in groups["data" if axis == "tensor" else "tensor"]',
             ("The axes are mixed up: who has other columns of the same examples, and "
              "who has other examples for the same weights?")),
            ("in groups[axis]", "in [[i] for i in range(len(x))]",
             "These are the devices' own products: nothing is summed."),
            ('zip(x, dy)], "data")', 'zip(x, dy)], "tensor")',
             ("The gradients are summed over the wrong groups: each device of a tensor "
              "group has weights of its own.")),
            ("for j in group)", "for j in group) / len(group)",
             "That is a mean over the group. A sum is asked for."),
            (("            for i in group:\n"
              "                total[i] = sum(parts[j] for j in group)"),
             ("            for i in group:\n"
              "                total[i] = parts[i]\n"
              "            for j in group[1:]:\n"
              "                total[group[0]] = total[group[0]] + parts[j]"),
             "Only the first of each group gets the sum. All of them need it."),
            ("total[i] = sum(parts[j] for j in group)",
             "total[i] = parts[i] = sum(parts[j] for j in group)",
             ("A device's sum takes the place of its part, and the next one of the "
              "group adds that in: keep the parts until all have summed.")),
        ],
        judge=by_cases(_judge_step, "{} × {} replicas and shares", [
            (1, 1), (1, 2), (2, 1), (2, 3),
        ]),
    ),
}
