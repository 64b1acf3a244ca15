"""An MLP whose arrays say where they lie, in PyTorch: DTensor.

    pip install torch
    torchrun --nproc-per-node 4 layouts_torch.py

Differs, float64: MXNet's `gelu` computes in float32, whatever its input is.
"""

# %% An MLP of two products, 32 rows, four devices
import math
import random

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.nn import functional as F

draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return torch.tensor(values).view(shape)


mesh = init_device_mesh("cpu", (4,))
ROWS, COLUMNS = [Shard(0)], [Shard(1)]
x = distribute_tensor(numbers(32, 16), mesh, ROWS)
up = distribute_tensor(numbers(16, 64), mesh, COLUMNS)
down = distribute_tensor(numbers(64, 16), mesh, ROWS)

# %% Rows of x, columns of u: an allgather and a reduce-scatter follow
u = x.redistribute(placements=[Replicate()]) @ up
y = F.gelu(u) @ down
z = x + y.redistribute(placements=ROWS)

# %% What came out
whole = z.full_tensor()
if dist.get_rank() == 0:
    for name, array in {"u": u, "y": y, "z": z}.items():
        print(f"{name}:", *array.placements)
result = [whole]
