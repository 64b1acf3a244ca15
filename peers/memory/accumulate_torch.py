"""Gradient accumulation with DDP: only the last backward sends.

    pip install torch
    torchrun --nproc-per-node 2 accumulate_torch.py
"""

# %% Four dense layers of 48 units, 64 examples, two devices
import math
import random
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

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
own_X, own_y = X.chunk(k)[rank], y.chunk(k)[rank]
replica = DDP(net)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)

# %% Four pieces on each process, one sum at the end
pieces = list(zip(own_X.chunk(4), own_y.chunk(4)))
for i, (piece, target) in enumerate(pieces):
    is_last = i == len(pieces) - 1
    with nullcontext() if is_last else replica.no_sync():
        loss = ((replica(piece) - target) ** 2).sum() / 2 / len(own_X)
        loss.backward()  # adds to the gradients
sgd.step()

# %% What came out
biases = [float(p.detach().abs().max()) for p in net.parameters() if p.ndim == 1]
if rank == 0:
    print("largest bias:", round(max(biases), 4))
result = [p.T if p.ndim == 2 else p for p in net.parameters()]
