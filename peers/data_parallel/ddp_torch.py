"""A step of data parallelism with DistributedDataParallel.

    pip install torch
    torchrun --nproc-per-node 2 ddp_torch.py

Differs, broadcast: DDP first sends the shapes and weights of process 0.
Differs, all_gather: DDP first checks that all processes have the same number of
parameters.
"""

# %% LeNet, 64 images, two processes
import math
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

draw = random.Random(1).uniform


def numbers(*shape, low=-0.1, high=0.1):
    """The same numbers in every framework."""
    return torch.tensor([draw(low, high) for _ in range(math.prod(shape))]).view(shape)


dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
net = nn.Sequential(
    nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2),
    nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2),
    nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10),
)
with torch.no_grad():  # the weights of `nn.Linear` are (out, in)
    for p in net.parameters():
        p.copy_(numbers(*p.shape) if p.ndim != 2 else numbers(*reversed(p.shape)).T)
X, y = numbers(64, 1, 28, 28, low=0, high=1), torch.arange(64) % 10

# %% The step: backward leaves the mean of all processes' gradients
replica = DDP(net)
sgd = torch.optim.SGD(replica.parameters(), lr=0.1)
own_X, own_y = X.chunk(k)[rank], y.chunk(k)[rank]
F.cross_entropy(replica(own_X), own_y).backward()
sgd.step()

# %% What came out
result = [p.T if p.ndim == 2 else p for p in net.parameters()]
if rank == 0:
    biases = result[7].detach()[:4]
    print("biases of the scores:", [round(float(b), 3) for b in biases], "...")
