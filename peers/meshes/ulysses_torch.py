"""All-to-all attention in PyTorch.

    pip install torch
    torchrun --nproc-per-node 4 ulysses_torch.py
"""

# %% Eight heads of width 16, 32 positions, four devices
import math
import random

import torch
import torch.distributed as dist
from torch.nn import functional as F

dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return torch.tensor(values).view(shape)


Q, K, V = (numbers(32, 8, 16, size=1).chunk(k)[rank] for _ in "QKV")


# %% Positions are cut outside of attention, heads inside
def exchange(parts):
    parts = parts.contiguous()  # one for each process
    arriving = torch.empty_like(parts)
    dist.all_to_all_single(arriving, parts)
    return arriving


def by_heads(x):  # (8 positions, 8 heads, 16) to (2 heads, 32 positions, 16)
    parts = exchange(x.unflatten(1, (k, 2)).movedim(1, 0))
    return parts.flatten(0, 1).movedim(1, 0)


out = F.scaled_dot_product_attention(*map(by_heads, (Q, K, V)))
parts = exchange(out.unflatten(1, (k, 8)).movedim(1, 0))
out = parts.flatten(0, 1).movedim(0, 1)

# %% What came out
whole = torch.empty(32, 8, 16)
dist.all_gather_into_tensor(whole, out.contiguous())
if rank == 0:
    first = [round(float(o), 4) for o in out[0, 0, :3]]
    print("first position of head 0:", first, "...")
result = [whole]
