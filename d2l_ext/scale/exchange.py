"""How long it takes until every device has the sum of all gradients: closed forms.

The α–β model: what runs at the same time on links of their own costs once.
"""

from ..data_parallel import traffic
from .link import whole

#: The ways of `seconds`: the three allreduces, and a parameter server.
WAYS = (*traffic.ALGORITHMS, "servers")


def seconds(way, devices, nbytes, link, servers=1, arrays=1, pushed=1.0):
    """Seconds of one exchange of `nbytes` per device on `devices` devices.

    `way`: one of `WAYS`. `link`: the `Link` of every device and every server.
    `arrays`: the gradients come as so many arrays, each with messages of its own.
    For `'servers'`: how many `servers` there are, and in `pushed` how much of the
    bytes is pushed, 1/16 with two-bit compression; what is pulled is never compressed.

        naive    2(k − 1)·(a·α + N·β)
        tree     2⌈log₂ k⌉·(a·α + N·β)
        ring     2(k − 1)·(a·α + N/k·β)
        servers  2·a·α + (1 + pushed)·max(1, k/s)·N·β

    A server's link carries N/s bytes of each of k workers, a worker's link N bytes:
    the servers are the bottleneck while there are fewer than workers. One device
    exchanges nothing, but with servers it still pushes and pulls.

    Raises `ValueError` for an unknown way, and counts below 1.
    Sources: Thakur, Rabenseifner and Gropp (2005), Patarasuk and Yuan (2009), Li et
    al., "Scaling Distributed Machine Learning with the Parameter Server" (2014).
    Developed in the chapter *A cost model*.
    """
    whole("devices", devices)
    whole("servers", servers)
    whole("arrays", arrays)
    if way == "servers":
        carried = (1 + pushed) * nbytes * max(1, devices / servers)
        return link.seconds(carried, messages=2 * arrays)
    if way not in WAYS:
        raise ValueError(f"unknown way {way!r}: choose one of {', '.join(WAYS)}")
    # All arrays at once would be one message: the rest of the arrays cost α only.
    return traffic.seconds(way, devices, nbytes, arrays * link.alpha, link.beta)


def server_seconds(workers, servers, nbytes, link, pushed=1.0):
    """Seconds for which a server's link is busy in a step, and those of a worker's."""
    each = (1 + pushed) * nbytes * link.beta
    return workers / servers * each, each
