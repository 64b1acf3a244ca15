"""Allreduce: every device ends with the sum over all devices.

Each file is one algorithm; all have the same result up to rounding, and none waits.

| file | what it holds |
|---|---|
| `naive` | device 0 gathers, sums, and sends the sum back |
| `binomial_tree` | whole arrays, in a logarithmic number of rounds |
| `ring_of_chunks` | chunks around a ring: reduce-scatter, then allgather |
| `halving` | the ring's bytes, in a logarithmic number of rounds |
| `double_tree` | two trees, with half of the array in each |
| `in_network` | sums in switches: in the tables only |
| `algorithm` | what the tables, the simulator and the trainer know about each |
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
