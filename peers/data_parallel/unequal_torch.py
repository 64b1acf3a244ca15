"""Unequal shares with DDP, which averages over processes.

    pip install torch
    torchrun --nproc-per-node 2 unequal_torch.py

Differs, all_reduce: the number of all examples is summed, too: 16 bytes.
"""

# %% Dense (48, 48), 64 examples: 48 for one device, 16 for the other
import math
import random

import torch
import torch.distributed as dist
from torch import nn
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
X, y = numbers(64, 48, size=1).split([48, 16]), numbers(64, 48, size=1).split([48, 16])
X, y = X[rank], y[rank]
replica = DDP(net)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)

# %% Weigh the mean loss, so that no share counts twice
share = torch.tensor([len(X)])
dist.all_reduce(share)  # all examples
mean = ((replica(X) - y) ** 2).sum() / 2 / len(X)
(mean * k * len(X) / share.item()).backward()
sgd.step()

# %% What came out
if rank == 0:
    print("first weights:", [round(float(w), 4) for w in net.weight.detach().T[0, :3]])
result = [net.weight.T, net.weight.T]
