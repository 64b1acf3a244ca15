"""Allreduce: every device ends with the sum over all devices.

Each file is one algorithm; all have the same result up to rounding, and none waits.
"""

from .binomial_tree import allreduce_tree, tree
from .naive import allreduce
from .ring_of_chunks import (
    allgather,
    allreduce_ring,
    cut,
    pass_on,
    reduce_scatter,
    ring,
)

__all__ = ["allgather", "allreduce", "allreduce_ring", "allreduce_tree", "cut",
           "pass_on", "reduce_scatter", "ring", "tree"]
