"""Attention over its heads in PyTorch.

    pip install torch
    torchrun --nproc-per-node 2 heads_torch.py
"""

# %% Attention with 4 heads of width 12, 16 positions, two devices
import math
import random

import torch
import torch.distributed as dist
from torch.nn import functional as F

dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
draw = random.Random(2).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return torch.tensor(values).view(shape)


x, qkv, out = numbers(16, 48, size=1), numbers(48, 144), numbers(48, 48)
qkv, out = qkv.chunk(k, dim=1)[rank], out.chunk(k)[rank]  # two heads are mine

# %% Two heads on each process, one sum at the end
heads = (x @ qkv).view(16, 2, 3, 12).permute(2, 1, 0, 3)  # (3, heads, positions, 12)
mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
y = mixed.transpose(0, 1).reshape(16, 24) @ out
dist.all_reduce(y)

# %% What came out
if rank == 0:
    print("first position:", [round(float(v), 4) for v in y[0, :3]], "...")
result = [y]
