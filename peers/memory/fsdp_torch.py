"""ZeRO 3 in PyTorch: FSDP2.

    pip install torch
    torchrun --nproc-per-node 2 fsdp_torch.py
"""

# %% Four dense layers of 48 units, 64 examples, two devices
import math
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (k,))
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

# %% Three steps; each device has half of everything
for layer in net:
    fully_shard(layer, mesh=mesh)
fully_shard(net, mesh=mesh)
sgd = torch.optim.SGD(net.parameters(), lr=0.125, momentum=0.875)
for _ in range(3):
    sgd.zero_grad()
    loss = ((net(own_X) - own_y) ** 2).sum() / 2 / len(own_X)
    loss.backward()
    sgd.step()

# %% What came out
whole = [p.full_tensor().detach() for p in net.parameters()]
if rank == 0:
    print("largest weight:", round(max(float(p.abs().max()) for p in whole), 4))
result = [p.T if p.ndim == 2 else p for p in whole]
