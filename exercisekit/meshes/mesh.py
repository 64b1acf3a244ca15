"""Exercises of the chapter *Data × tensor × pipeline*."""

import numpy

from ..question import Question, Task


def groups(lengths, axis):
    """Partners are as far apart as the lengths behind the axis say."""
    apart, size = int(numpy.prod(lengths[axis + 1 :])), lengths[axis]
    firsts = [d for d in range(int(numpy.prod(lengths))) if d // apart % size == 0]
    return [[d + i * apart for i in range(size)] for d in firsts]


def _judge_groups(function):
    for lengths, axis in [((3,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 3, 4), 0),
                          ((2, 3, 4), 1), ((2, 3, 4), 2)]:  # fmt: skip
        found, right = (
            sorted(sorted(map(int, group)) for group in made(lengths, axis))
            for made in (function, groups)
        )
        if found != right:
            first = next((f for f in found if f not in right), found[0])
            yield (f"groups({lengths}, {axis}) gives {len(found)}, as {first}, "
                   f"and not {len(right)}, as {right[0]}.")  # fmt: skip


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


def _judge_step(function):
    rng = numpy.random.RandomState(3)
    for data, tensor in (1, 1), (1, 2), (2, 1), (2, 3):
        k, mesh = data * tensor, {"data": groups((data, tensor), 0),
                                  "tensor": groups((data, tensor), 1)}  # fmt: skip
        X, W, D = (rng.randint(1, 9, size).astype(float) for size in
                   ((2 * data, 2 * tensor), (2 * tensor, 2), (2 * data, 2)))
        rows = [slice(i // tensor * 2, i // tensor * 2 + 2) for i in range(k)]
        columns = [slice(i % tensor * 2, i % tensor * 2 + 2) for i in range(k)]
        given = ([X[r, c] for r, c in zip(rows, columns)], [D[r] for r in rows],
                 [W[c] for c in columns])  # fmt: skip
        kept = [[part.copy() for part in parts] for parts in given]
        found = function(*given, mesh)
        said = f"{data} × {tensor} replicas and shares: on device"
        rights = ([(X @ W)[r] for r in rows], [(X.T @ D)[c] for c in columns])
        for what, parts, right in zip(("output", "gradient"), found, rights):
            for i, (part, r) in enumerate(zip(parts, right)):
                if numpy.shape(part) != r.shape:
                    yield (f"{said} {i} the {what} has shape {numpy.shape(part)}, "
                           f"and not {r.shape}.")  # fmt: skip
                elif not numpy.allclose(part, r):
                    yield (f"{said} {i} the {what} begins with {part[0, 0]:g}, "
                           f"and not {r[0, 0]:g}.")  # fmt: skip
        if any((a != b).any() for old, new in zip(kept, given)
               for a, b in zip(old, new)):  # fmt: skip
            yield f"{data} × {tensor}: it changes what it is given."


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
        "your function groups",
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
        judge=_judge_groups,
    ),
    4: Task(
        "your function step",
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
        judge=_judge_step,
    ),
}  # fmt: skip
