"""Two kinds of links: an allreduce that sends little over the slow ones.

Links inside a host are fast, links between hosts are slow. So the devices of a host
first sum among themselves, until each holds one chunk of the host's sum. Then device j
of every host sums its chunk with device j of the other hosts, all chunks at the same
time, each on its own link. At the end each host passes the chunks around.

    2 hosts of 3 devices           0    1    2       3    4    5
    inside: reduce-scatter         b    c    a       b    c    a      a chunk of three
    between: allreduce             0 with 3, 1 with 4, 2 with 5
    inside: allgather             abc  abc  abc     abc  abc  abc
"""

from itertools import chain

from ..checks import whole_number
from ..data_parallel import allreduce as ring
from ..data_parallel import costs, traffic


@traffic.checked
def allreduce_hierarchy(data, *, hosts):
    """Allreduce as `allreduce_ring` does, in three steps: inside, between, inside the
    hosts.

    `data` and errors: as in `allreduce`, the devices of a host one after another.
    `hosts`: their number; `ValueError` if they cannot have equal numbers of devices.
    Source: Mikami et al., "Massively Distributed SGD" (2018).
    Developed in the chapter *Two kinds of links*.
    """
    whole_number("hosts", hosts)
    k, d = len(data), len(data) // hosts
    if k % hosts:
        raise ValueError(
            f"{k} devices cannot be divided evenly over {hosts} hosts: choose a number "
            f"of hosts that divides {k}"
        )
    chunks = [ring.cut(x, d) for x in data]
    inside = [chunks[first : first + d] for first in range(0, k, d)]
    sums = traffic.at_once(ring.reduce_scatter, inside)
    traffic.at_once(ring.allreduce_ring, zip(*sums))
    if d > 1:
        traffic.at_once(lambda pair: ring.allgather(*pair), zip(sums, inside))


def schedule(hosts, devices, size):
    """Return the messages of all rounds, rows of (from, to, amount), for the simulator.

    `hosts` h of `devices` d each; `size` N of an array, in numbers or bytes. Where
    d·h divides it, a device sends 2(d − 1)/d·N inside its host, in 2(d − 1) rounds, and
    2(h − 1)/h·N/d to other hosts, in 2(h − 1). `ValueError` for counts below 1.
    """
    whole_number("hosts", hosts)
    whole_number("devices", devices)
    edges, k = traffic.cuts(size, devices), hosts * devices
    own = [edges[c + 1] - edges[c] for c in [*range(1, devices), 0]]
    inside = _merge(flat(range(i, i + devices), size) for i in range(0, k, devices))
    between = _merge(flat(range(j, k, devices), n) for j, n in enumerate(own))
    return [*inside[: devices - 1], *between, *inside[devices - 1 :]]


def flat(order, size):
    """Return the messages of one ring through the devices in this `order`."""
    edges = traffic.cuts(size, len(order))
    return [[(order[i - 1], order[i], edges[c + 1] - edges[c])
             for i, c in enumerate(row)] for row in ring.ring(len(order))]


def _merge(rings):
    return [[*chain(*rows)] for rows in zip(*rings)]


def seconds(hosts, devices, nbytes, inner, outer):
    """Return the seconds of `allreduce_hierarchy` in the α–β model; additions are free.

        2(d − 1)·(α + N/d·β) inside, and 2(h − 1)·(α + N/(d·h)·β) between the hosts

    `inner`, `outer`: `scale.step.Link`s; every device has its own two. If the d devices
    of a host share one network card, give an `outer` of d times the β.
    Raises `ValueError` for counts below 1. Developed in the chapter *Two kinds of
    links*.
    """
    whole_number("hosts", hosts)
    whole_number("devices", devices)
    inside = costs.seconds("ring", devices, nbytes, inner.alpha, inner.beta)
    between = costs.seconds("ring", hosts, nbytes / devices, outer.alpha, outer.beta)
    return inside + between
