"""Allreduce in the network: switches add, and send the sum to every device.

Source: Graham et al., "Scalable Hierarchical Aggregation Protocol (SHArP)" (2016). No
switch is simulated in this library's messages: this is a row of the tables only.
"""

from .algorithm import Algorithm


def cost(k, chunks):
    """`chunks` + 1 rounds: one chunk goes up while the last comes down."""
    return chunks + 1, (chunks + 1) / chunks


def sent(k, size):
    """Each device's array, to the switch and back."""
    return [(i, i, size) for i in range(k) if k > 1]


ALGORITHM = Algorithm("network", cost=cost, sent=sent, chunked=True)
