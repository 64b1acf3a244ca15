"""Exercises of the chapter *Two kinds of links*."""

from ..question import Note, Question, Task, by_cases, compared, shown


def ring_order(hosts):
    """The devices of a host one after another."""
    return sorted(range(len(hosts)), key=hosts.__getitem__)


def _judge_ring_order(function, hosts):
    found, enough = list(function(hosts)), len({*hosts})
    if sorted(map(str, found)) != sorted(map(str, range(len(hosts)))):
        return f"{shown(found)} does not have each device once."
    crossed = sum(hosts[i] != hosts[j] for i, j in zip(found, found[-1:] + found))
    if crossed > enough:
        return f"{shown(found)} crosses {crossed} times; {enough} are enough."
    return Note(f"{len(hosts)} devices of {enough} hosts: it crosses {crossed} times "
                f"({enough} are enough).")


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
    1: Question(
        "the megabytes that leave by one card",
        234.375,
        [
            (1875, "That is a leader's, which sends all chunks: divide by 8."),
            (1984.375, "That is one ring of all devices."),
            (117.1875, "Each chunk is summed, and then passed around: twice as many."),
        ],
        tolerance=0.01,
    ),
    2: Task(
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
             ("That says for each device its place in the ring. Expected, for each "
              "place, its device.")),
        ],
        judge=by_cases(_judge_ring_order, "Hosts {}", [
            ([0],), ([0, 1, 0],), ([7, 3, 7, 3],), ([0, 1, 0, 1, 1, 0],),
            ([2, 0, 1, 0, 2, 1, 1, 0],),
        ]),
    ),
    3: Task(
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
    4: Task(
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
}
