"""Allreduce in the network: switches add, and send the sum to every device.

Source: Graham et al., "Scalable Hierarchical Aggregation Protocol (SHArP)" (2016). This
library simulates no switch in its messages: the algorithm is only in the tables.
"""

from .algorithm import Algorithm


def cost(k, chunks):
    """Return `chunks` + 1 rounds, as one chunk goes up while the last comes down."""
    return chunks + 1, (chunks + 1) / chunks


def sent(k, size):
    """Return what is sent: each device's array, to the switch and back."""
    return [(i, i, size) for i in range(k) if k > 1]


ALGORITHM = Algorithm("network", cost=cost, sent=sent, chunked=True)
