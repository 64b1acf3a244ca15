"""Context parallelism in PyTorch: an experimental context around any attention.

    pip install torch numpy
    torchrun --nproc-per-node 4 context_parallel_torch.py

Differs, send: the ring's kernels are for GPUs, so nothing goes around here.
Differs, all_gather: attention in single operators, which runs on CPUs, needs whole keys
and values, as many bytes as the ring.
"""

# %% Two heads of width 8, 32 positions, four devices
import math
import random

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import (
    _attention,
    context_parallel,
    implicit_replication,
)
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return torch.tensor(values).view(shape)


mesh = init_device_mesh("cpu", (4,))
Q, K, V = (numbers(1, 2, 32, 8, size=1) for _ in "QKV")
_attention._cp_options.enable_load_balance = False  # zigzag needs GPU kernels

# %% Positions are cut; the attention is one for a single device
with (
    context_parallel(mesh, buffers=[Q, K, V], buffer_seq_dims=[2, 2, 2]),
    implicit_replication(), sdpa_kernel(SDPBackend.MATH),  # for CPUs; GPUs need neither
):
    own = F.scaled_dot_product_attention(Q, K, V, is_causal=True)

# %% What came out
[out] = _attention.context_parallel_unshard(mesh, [own], [2])
if dist.get_rank() == 0:
    last = [round(float(o), 4) for o in out[0, 0, -1, :3]]
    print("last position of head 0:", last, "...")
result = [out[0]]
