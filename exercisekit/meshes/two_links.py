"""Exercises of the chapter *Two kinds of links*."""

from ..question import Note, Question, Task, by_cases, compared, shown


def ring_order(hosts):
    """Return the devices in an order in which those of each host are consecutive."""
    return sorted(range(len(hosts)), key=lambda device: hosts[device])


def _one_of_each_in_turn(hosts):
    before = [hosts[:i].count(host) for i, host in enumerate(hosts)]
    return sorted(range(len(hosts)), key=lambda i: (before[i], hosts[i]))


def _judge_ring_order(function, hosts):
    found, enough = list(function(hosts)), len({*hosts})
    if sorted(map(str, found)) != sorted(map(str, range(len(hosts)))):
        return f"{shown(found)} does not contain each device exactly once."
    crossed = sum(hosts[i] != hosts[j] for i, j in zip(found, found[-1:] + found))
    if crossed > enough:
        return f"{shown(found)} crosses {crossed} times; {enough} are enough."
    return Note(f"{len(hosts)} devices of {enough} hosts: it crosses {crossed} times "
                f"({enough} are enough).")


def faster(hosts, devices, cards, inner, outer):
    """Return 'ring' or 'hierarchy', by the bytes over `cards` cards of each host."""
    k = hosts * devices
    ring = 2 * (k - 1) / k * max(inner, outer)  # all wait for the slowest link
    inside = 2 * (devices - 1) / devices * inner
    between = 2 * (hosts - 1) / hosts * outer / cards
    return "hierarchy" if inside + between < ring else "ring"


def _forgets(hosts, devices, cards, inner, outer, passes=2, waits_for=max):
    """`faster`, but with other passes inside a host, or another wait in the ring."""
    k = hosts * devices
    ring = 2 * (k - 1) / k * waits_for(inner, outer)
    inside = passes * (devices - 1) / devices * inner
    between = 2 * (hosts - 1) / hosts * outer / cards
    return "hierarchy" if inside + between < ring else "ring"


def levels(nbytes, groups):
    """Return the seconds with any number of levels, each on the last one's chunk."""
    total = 0
    for k, alpha, beta in groups:
        total += 2 * (k - 1) * (alpha + nbytes / k * beta)
        nbytes /= k
    return total


_HOST, _RACK, _HALL = (8, 0.5, 1.0), (4, 0.0, 10.0), (16, 2.0, 40.0)


QUESTIONS = {
    1: Question(
        "the megabytes that leave through one card",
        234.375,
        [
            (1875, "That is for a leader, which sends all chunks: divide by 8."),
            (1984.375, "That is for one ring of all devices."),
            (117.1875, "Each chunk is summed, then passed around: twice the bytes."),
        ],
        tolerance=0.01,
    ),
    2: Task(
        "a function `ring_order(hosts)`",
        ring_order,
        [
            (lambda hosts: [*range(len(hosts))],
             "That is the order of their numbers, whatever their hosts."),
            (sorted, "These are hosts: the ring consists of devices."),
            (_one_of_each_in_turn,
             "It takes one device of each host in turn: each of its steps crosses."),
        ],
        judge=by_cases(_judge_ring_order, "Hosts {}", [
            ([0],), ([0, 1, 0],), ([7, 3, 7, 3],), ([0, 1, 0, 1, 1, 0],),
            ([2, 0, 1, 0, 2, 1, 1, 0],),
        ]),
    ),
    3: Task(
        "a function `faster(hosts, devices, cards, inner, outer)`",
        faster,
        [
            (lambda hosts, devices, cards, inner, outer:
             faster(hosts, devices, devices, inner, outer),  # always "hierarchy"
             ("The hierarchy takes time inside the hosts, too, and its messages leave "
              "through `cards` cards, not one per device. It may be slower.")),
            (lambda *given: _forgets(*given, passes=1),
             "Inside a host there is a reduce-scatter and an allgather, too."),
            (lambda *given: _forgets(*given, waits_for=lambda inner, outer: outer),
             "A ring waits for its slowest link, which may be an inner one."),
            (lambda hosts, devices, cards, inner, outer:
             faster(hosts, devices, 2 * cards, inner, outer),
             "Between hosts, a ring sends parts to be summed, and then the sums."),
        ],
        judge=compared(faster, [
            (2, 4, 4, 2, 10), (2, 4, 2, 6, 10), (2, 2, 1, 7, 10), (3, 2, 1, 12, 10),
            (2, 4, 2, 12, 10), (16, 4, 1, 1, 10), (4, 4, 1, 2, 10), (3, 2, 2, 7, 10),
            (2, 4, 1, 9.5, 10), (2, 4, 4, 12, 10), (16, 4, 1, 2, 10),
        ]),
    ),
    4: Task(
        "a function `levels(nbytes, groups)`",
        levels,
        [
            (lambda nbytes, groups: sum(levels(nbytes, [group]) for group in groups),
             ("After a level's reduce-scatter, a device has only a part of the array "
              "for the next one.")),
            (lambda nbytes, groups: levels(nbytes, groups) / 2,
             "That is one direction. The sums have to come back."),
            (lambda nbytes, groups:
             levels(nbytes, [(k, alpha, k * beta) for k, alpha, beta in groups]),
             "A message of a ring carries one chunk of the array."),
        ],
        judge=compared(levels, [
            (3200.0, [_HOST]), (3200.0, [_HALL]), (3200.0, [_HOST, _RACK]),
            (3300.0, [_HOST, _RACK, _HALL]), (3200.0, [(1, 5.0, 1.0), _HALL]),
        ], tolerance=1e-6),
    ),
}
