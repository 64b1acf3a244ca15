"""Gradients that travel in 16 bits: a communication hook of DDP.

    pip install torch
    torchrun --nproc-per-node 2 half_torch.py
"""

# %% Dense (48, 48), 64 examples, two devices
import math
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return torch.tensor(values).view(shape)


net = nn.Linear(48, 48, bias=False)
with torch.no_grad():
    net.weight.copy_(numbers(48, 48).T)
X, y = numbers(64, 48, size=1).chunk(k)[rank], numbers(64, 48, size=1).chunk(k)[rank]
replica = DDP(net)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)

# %% Halve, send as float16, and add
replica.register_comm_hook(None, default_hooks.fp16_compress_hook)
(((replica(X) - y) ** 2).sum() / 2 / len(X)).backward()
sgd.step()

# %% What came out
if rank == 0:
    print("first weights:", [round(float(w), 4) for w in net.weight.detach().T[0, :3]])
result = [net.weight.T, net.weight.T]
