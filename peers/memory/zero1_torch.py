"""ZeRO 1 in PyTorch: ZeroRedundancyOptimizer.

    pip install torch
    torchrun --nproc-per-node 2 zero1_torch.py

Differs, all_reduce: DDP sums whole gradients, although a process needs only its part.
Differs, reduce_scatter: there is none, because DDP sums whole gradients.
Differs, broadcast: DDP first sends all parameters, and 232 bytes of shapes and buckets;
after each step, each process sends those that it has updated, whole arrays.
Differs, all_gather: DDP first checks that all processes have the same number of
parameters.
"""

# %% Four dense layers of 48 units, 64 examples, two devices
import math
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
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

# %% Three steps; each device updates half of the weights
replica = DDP(net)
sgd = ZeroRedundancyOptimizer(
    net.parameters(), torch.optim.SGD, lr=0.125, momentum=0.875)
for _ in range(3):
    sgd.zero_grad()
    loss = ((replica(own_X) - own_y) ** 2).sum() / 2 / len(own_X)
    loss.backward()
    sgd.step()

# %% What came out
if rank == 0:
    largest = max(float(p.detach().abs().max()) for p in net.parameters())
    print("largest weight:", round(largest, 4))
result = [p.T if p.ndim == 2 else p for p in net.parameters()]
