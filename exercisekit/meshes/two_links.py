"""Exercises of the chapter *Two kinds of links*."""

from ..question import Note, Question, Task, by_cases, compared, shown


def ring_order(hosts):
    """The devices of a host one after another."""
    return sorted(range(len(hosts)), key=lambda device: hosts[device])


def _sorts_the_hosts(hosts):
    return sorted(hosts)


def _order_of_numbers(hosts):
    return [*range(len(hosts))]


def _one_of_each_in_turn(hosts):
    before = [hosts[:i].count(host) for i, host in enumerate(hosts)]
    return sorted(range(len(hosts)), key=lambda i: (before[i], hosts[i]))


def _guesses_the_host(hosts):
    return sorted(range(len(hosts)), key=lambda i: i % len({*hosts}))


def _two_hosts(hosts):
    return [i for h in (0, 1) for i, at in enumerate(hosts) if at == h]


def _lists_of_lists(hosts):
    return [[i for i, at in enumerate(hosts) if at == h] for h in sorted({*hosts})]


def _judge_ring_order(function, hosts):
    found, enough = list(function(hosts)), len({*hosts})
    if sorted(map(str, found)) != sorted(map(str, range(len(hosts)))):
        return f"{shown(found)} does not have each device once."
    crossed = sum(hosts[i] != hosts[j] for i, j in zip(found, found[-1:] + found))
    if crossed > enough:
        return f"{shown(found)} crosses {crossed} times; {enough} are enough."
    return Note(f"{len(hosts)} devices of {enough} hosts: it crosses {crossed} times "
                f"({enough} are enough).")


def faster(hosts, devices, cards, inner, outer):
    """'ring' or 'hierarchy', by the bytes over `cards` cards of each host."""
    k = hosts * devices
    ring = 2 * (k - 1) / k * outer
    inside = 2 * (devices - 1) / devices * inner
    between = 2 * (hosts - 1) / hosts * outer / cards
    return "hierarchy" if inside + between < ring else "ring"


def _faster(ring_cards=False, own_cards=True, inside=2, between=2, add=sum, less=True):
    """The comparison as a learner might make it."""

    def made(hosts, devices, cards, inner, outer):
        k = hosts * devices
        ring = 2 * (k - 1) / k * outer / (cards if ring_cards else 1)
        out = outer / (cards if own_cards else 1)
        ours = add([inside * (devices - 1) / devices * inner,
                    between * (hosts - 1) / hosts * out])
        return "hierarchy" if (ours < ring) == less else "ring"

    return made


def levels(nbytes, groups):
    """Seconds with any number of levels, each on what the one inside leaves."""
    total = 0
    for k, alpha, beta in groups:
        total += 2 * (k - 1) * (alpha + nbytes / k * beta)
        nbytes /= k
    return total


def _levels(messages=lambda k: 2 * (k - 1), part=lambda nbytes, k: nbytes / k,
            left=lambda nbytes, k: nbytes / k, order=1):
    """The sum over levels as a learner might write it."""

    def made(nbytes, groups):
        total = 0
        for k, alpha, beta in groups[::order]:
            total += messages(k) * (alpha + part(nbytes, k) * beta)
            nbytes = left(nbytes, k)
        return total

    return made


def _latency_once(nbytes, groups):
    total = 0
    for k, alpha, beta in groups:
        total += 2 * alpha + 2 * (k - 1) * nbytes / k * beta
        nbytes /= k
    return total


_HOST, _RACK, _HALL = (8, 0.0, 1.0), (4, 0.0, 10.0), (16, 2.0, 40.0)


QUESTIONS = {
    1: Question(
        "the megabytes that leave through one card",
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
            (_order_of_numbers,
             "That is the order of their numbers, whatever their hosts."),
            (_sorts_the_hosts, "These are hosts: the ring consists of devices."),
            (_one_of_each_in_turn,
             "It takes one device of each host in turn: each of its steps crosses."),
            (_guesses_the_host,
             "A device's host is in `hosts`: its number does not tell it."),
            (_two_hosts,
             "There may be any number of hosts, and they may have any numbers."),
            (_lists_of_lists,
             "A list of lists is not a ring: put one list after the other."),
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
            (lambda *_: "hierarchy",
             "The hierarchy takes time inside the hosts, too. It may be slower."),
            (_faster(own_cards=False),
             "All cards of a host carry the hierarchy's messages to other hosts."),
            (_faster(ring_cards=True),
             "The ring leaves a host through one card, however many there are."),
            (_faster(inside=1),
             "Inside a host there is a reduce-scatter and an allgather, too."),
            (_faster(between=1),
             "Between hosts, a ring sends parts to be summed, and then the sums."),
            (_faster(add=max),
             "A part is summed inside its host before it leaves: one after the other."),
            (_faster(less=False), "Return the way that takes *less* time."),
        ],
        judge=compared(faster, [
            (2, 4, 4, 2, 10), (2, 4, 2, 5, 10), (2, 2, 1, 7, 10), (3, 2, 1, 12, 10),
            (2, 4, 2, 12, 10), (16, 4, 1, 1, 10),
        ]),
    ),
    4: Task(
        "a function `levels(nbytes, groups)`",
        levels,
        [
            (_levels(left=lambda nbytes, k: nbytes),
             ("After a level's reduce-scatter, a device has only a part of the array "
              "for the next one.")),
            (_levels(messages=lambda k: k - 1),
             "That is the way out. The sums have to come back."),
            (_levels(messages=lambda k: 2 * k),
             "In a ring of k, a chunk is sent k − 1 times each way."),
            (_latency_once,
             "Every message has the latency of its link. You count it once per level."),
            (_levels(part=lambda nbytes, k: nbytes),
             "A message of a ring carries one chunk of the array."),
            (_levels(order=-1), "Begin inside, with the first of the groups."),
        ],
        judge=compared(levels, [
            (3200.0, [_HOST]), (3200.0, [_HALL]), (3200.0, [_HOST, _RACK]),
            (3200.0, [_HOST, _RACK, _HALL]), (3200.0, [(1, 5.0, 1.0), _HALL]),
        ], tolerance=1e-6),
    ),
}
