"""Data and tensor parallelism on a mesh of 2 × 2, in PyTorch.

    pip install torch
    torchrun --nproc-per-node 4 mesh_torch.py

Differs, scatter: process 0 of each row first sends the others their parts.
Differs, broadcast: a bias that is not cut goes from process 0 of a row to all, once.
"""

# %% Dense (48, 192), ReLU, dense (192, 48); 64 examples; a mesh of 2 × 2
import math
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
draw = random.Random(2).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return torch.tensor(values).view(shape)


net = nn.Sequential(nn.Linear(48, 192), nn.ReLU(), nn.Linear(192, 48))
with torch.no_grad():  # the weights of `nn.Linear` are (out, in)
    for p in net.parameters():
        p.copy_(numbers(*reversed(p.shape)).T if p.ndim == 2 else numbers(*p.shape))
X, y = numbers(64, 48, size=1), numbers(64, 48, size=1)

# %% Rows of the mesh divide the layers, columns sum gradients
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
cuts = {"0": ColwiseParallel(), "2": RowwiseParallel()}
parallelize_module(net, mesh["tensor"], cuts)
me = mesh.get_local_rank("data")
own_X, own_y = X.chunk(2)[me].requires_grad_(), y.chunk(2)[me]
(((net(own_X) - own_y) ** 2).sum() / 2 / len(X)).backward()
with torch.no_grad():
    for p in net.parameters():
        dist.all_reduce(p.grad.to_local(), group=mesh.get_group("data"))
        p -= 0.1 * p.grad

# %% What came out
if rank == 0:
    print("process 0 holds", [tuple(p.to_local().shape) for p in net.parameters()])
result = [p.full_tensor() for p in net.parameters()]
result = [p.T if p.ndim == 2 else p for p in result]
