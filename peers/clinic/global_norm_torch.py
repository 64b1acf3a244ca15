"""Clipping by the global norm in PyTorch: a norm of DTensors knows where they lie.

    pip install torch
    torchrun --nproc-per-node 2 global_norm_torch.py

Differs, all_reduce: four numbers travel, one for each array, in float32; in the chapter
one for all of them, in float64.
Differs, float64: PyTorch adds 1e-6 to the norm before it divides by it.
"""

# %% The gradient of a tensor-parallel group: columns of W1, rows of W2; b2 is whole
import math
import random

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.nn.utils import clip_grad_norm_

draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return torch.tensor(values).view(shape)


mesh = init_device_mesh("cpu", (2,))
params = []
for shape, place in (((196, 32), Shard(1)), ((32,), Shard(0)), ((32, 10), Shard(0)),
                     ((10,), Replicate())):
    p = distribute_tensor(torch.zeros(shape), mesh, [place]).requires_grad_()
    p.grad = distribute_tensor(numbers(*shape), mesh, [place])
    params.append(p)

# %% Squares add up; what two devices hold counts once
norm = clip_grad_norm_(params, max_norm=0.5).full_tensor()

# %% What came out
if dist.get_rank() == 0:
    print("norm before:", round(float(norm), 4))
result = [norm, *(p.grad.full_tensor() for p in params)]
