"""Recomputation in PyTorch.

    pip install torch
    torchrun --nproc-per-node 1 recompute_torch.py
"""

# %% Four dense layers of 48 units, 64 examples, one device
import math
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
draw = random.Random(2).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return torch.tensor(values).view(shape)


net = nn.Sequential(*(nn.Sequential(nn.Linear(48, 48), nn.ReLU()) for _ in range(4)))
with torch.no_grad():  # the weights of `nn.Linear` are (out, in)
    for p in net.parameters():
        p.copy_(numbers(*p.shape).T if p.ndim == 2 else numbers(*p.shape))
X, y = numbers(64, 48, size=1), numbers(64, 48, size=1)

# %% Two segments of two layers: only their inputs are kept
h = X
for segment in (net[:2], net[2:]):
    h = checkpoint(segment, h, use_reentrant=False)
(((h - y) ** 2).sum() / 2).backward()

# %% What came out
result = [p.grad.T if p.ndim == 2 else p.grad for p in net.parameters()]
print("first gradients:", [round(float(g), 4) for g in result[0][0, :3]])
