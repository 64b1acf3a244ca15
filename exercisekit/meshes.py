"""Answers to exercises of the part on meshes."""

import numpy

from .question import Note, Question, Task, compared, shown

# ---- mesh ----


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


# ---- two_links ----


def ring_order(hosts):
    """The devices of a host one after another."""
    return sorted(range(len(hosts)), key=hosts.__getitem__)


def _judge_ring_order(function):
    for hosts in ([0], [0, 1, 0], [0, 1, 0, 1, 1, 0], [2, 0, 1, 0, 2, 1, 1, 0],
                  [7, 3, 7, 3]):  # fmt: skip
        found = function(given := list(hosts))
        said = f"Hosts {hosts}: {shown(found := list(found))}"
        if given != hosts:
            yield f"{said}, and it changes what it is given."
        elif {*map(str, found)} != {*map(str, range(len(hosts)))}:
            yield f"{said} does not have each device once."
        else:
            steps = zip(found, found[-1:] + found)
            crossed = sum(hosts[i] != hosts[j] for i, j in steps)
            if crossed > len({*hosts}):
                yield f"{said} crosses {crossed} times; {len({*hosts})} are enough."
            elif len(hosts) == 8:
                yield Note(f"8 devices of 3 hosts: it crosses {crossed} times (3 are "
                           "enough).")  # fmt: skip


def quicker(hosts, devices, cards, inner, outer):
    """'ring' or 'hierarchy', by the bytes over `cards` cards of each host."""
    k = hosts * devices
    ring = 2 * (k - 1) / k * outer
    inside = 2 * (devices - 1) / devices * inner
    between = 2 * (hosts - 1) / hosts * outer / cards
    return "hierarchy" if inside + between < ring else "ring"


def levels(nbytes, groups):
    """Seconds with any number of levels, each on what the one inside leaves."""
    total = 0
    for k, alpha, beta in groups:
        total += 2 * (k - 1) * (alpha + nbytes / k * beta)
        nbytes /= k
    return total


_HOST, _RACK, _HALL = (8, 0.0, 1.0), (4, 0.0, 10.0), (16, 2.0, 40.0)

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
    ("mesh", 4): Task(
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
        "a function `ring_order(hosts)`",
        ring_order,
        [
            (lambda hosts: list(range(len(hosts))),
             "That is the order of their numbers, whatever their hosts."),
            (lambda hosts: sorted(hosts),
             "These are hosts: the ring is made of devices."),
            ("hosts.__getitem__", "lambda i: (hosts[:i].count(hosts[i]), hosts[i])",
             "It takes one device of each host in turn: each of its steps crosses."),
            ("hosts.__getitem__", "lambda i: i % len({*hosts})",
             "A device's host is in `hosts`: its number does not tell it."),
            (lambda hosts: [i for h in (0, 1) for i, at in enumerate(hosts) if at == h],
             "There may be any number of hosts, and they may have any numbers."),
            (lambda hosts: [i for h in range(max(hosts)) for i, at in enumerate(hosts)
                            if at == h],
             "The devices of the last host are not in it."),
            (lambda hosts: [[i for i, at in enumerate(hosts) if at == h]
                            for h in sorted({*hosts})],
             "A list of lists is no ring: put them behind each other."),
            (lambda hosts: [ring_order(hosts).index(i) for i in range(len(hosts))],
             ("That says for each device its place in the ring. Asked is, for each "
              "place, its device.")),
        ],
        judge=_judge_ring_order,
    ),
    ("two_links", 3): Task(
        "a function `quicker(hosts, devices, cards, inner, outer)`",
        quicker,
        [
            (lambda *_: "hierarchy",
             "The hierarchy takes time inside the hosts, too, and not always less."),
            ("outer / cards", "outer",
             "All cards of a host carry the hierarchy's messages to other hosts."),
            ("/ k * outer", "/ k * outer / cards",
             "The ring leaves a host by one card, however many there are."),
            ("2 * (devices - 1)", "(devices - 1)",
             "Inside a host there is a reduce-scatter, and an allgather too."),
            ("2 * (hosts - 1)", "(hosts - 1)",
             "Between hosts, sums go around as well as parts to be summed."),
            ("inside + between", "max(inside, between)",
             "A part is summed inside its host before it leaves: one after the other."),
            ("hierarchy\" if inside + between < ring else \"ring",
             "ring\" if inside + between < ring else \"hierarchy",
             "The one that takes *less* time is asked for."),
        ],
        judge=compared(quicker, [
            (2, 4, 4, 2, 10), (2, 4, 2, 5, 10), (2, 2, 1, 7, 10), (3, 2, 1, 12, 10),
            (2, 4, 2, 12, 10), (16, 4, 1, 1, 10),
        ]),
    ),
    ("two_links", 4): Task(
        "a function `levels(nbytes, groups)`",
        levels,
        [
            ("nbytes /= k", "pass",
             ("After a level's reduce-scatter, a device has only a part of the array "
              "for the next one.")),
            ("2 * (k - 1)", "(k - 1)",
             "That is the way out. The sums have to come back."),
            ("2 * (k - 1)", "2 * k", "In a ring, one's own chunk need not arrive."),
            ("(alpha + nbytes / k * beta)", "(nbytes / k * beta) + 2 * alpha",
             "Each message has the latency of its link, and not each level."),
            ("nbytes / k * beta", "nbytes * beta",
             "A message of a ring carries one chunk of what is summed."),
            ("in groups", "in groups[::-1]",
             "It begins inside, at the first of the groups."),
            ("total += ", "total = ", "All levels take their time, not the last one."),
        ],
        judge=compared(levels, [
            (3200.0, [_HOST]), (3200.0, [_HALL]), (3200.0, [_HOST, _RACK]),
            (3200.0, [_HOST, _RACK, _HALL]), (3200.0, [(1, 5.0, 1.0), _HALL]),
        ], tolerance=1e-6),
    ),
}  # fmt: skip
