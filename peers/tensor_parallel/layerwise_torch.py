"""A dense block divided inside its layers, in PyTorch: DTensor.

    pip install torch
    torchrun --nproc-per-node 2 layerwise_torch.py

Differs, scatter: process 0 first sends the others their parts of the weights.
Differs, broadcast: a bias that is not cut goes from process 0 to all, once.
"""

# %% Dense (48, 192), ReLU, dense (192, 48); 64 examples; two processes
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

draw = random.Random(0).uniform


def numbers(*shape, low=-0.1, high=0.1):
    """The same numbers in every framework."""
    return torch.tensor([draw(low, high) for _ in range(math.prod(shape))]).view(shape)


mesh = init_device_mesh("cpu", (2,))
net = nn.Sequential(nn.Linear(48, 192), nn.ReLU(), nn.Linear(192, 48))
with torch.no_grad():  # the weights of `nn.Linear` are (out, in)
    for p in net.parameters():
        p.copy_(numbers(*p.shape) if p.ndim != 2 else numbers(*reversed(p.shape)).T)
X, y = (numbers(64, 48, low=-1, high=1) for _ in "Xy")
X.requires_grad_()

# %% Columns, then rows: one sum forward, one backward
parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
loss = ((net(X) - y) ** 2).sum() / 2 / len(X)
loss.backward()
sgd.step()

# %% What came out
if dist.get_rank() == 0:
    print("process 0 holds", [tuple(p.to_local().shape) for p in net.parameters()])
result = [p.full_tensor() for p in net.parameters()]
result = [*(p.T if p.ndim == 2 else p for p in result), X.grad]
