"""A step of data parallelism in PyTorch, its sum written out.

    pip install torch
    torchrun --nproc-per-node 2 step_torch.py
"""

# %% LeNet, 64 images, two processes
import math
import random

import torch
import torch.distributed as dist
from torch.nn import functional as F

SHAPES = ((20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,),
          (800, 128), (128,), (128, 10), (10,))
draw = random.Random(1).uniform


def numbers(*shape, low=-0.1, high=0.1):
    """The same numbers in every framework."""
    return torch.tensor([draw(low, high) for _ in range(math.prod(shape))]).view(shape)


def lenet(X, W1, b1, W2, b2, W3, b3, W4, b4):
    """Scores of ten classes for images X, (n, 1, 28, 28)."""
    h = F.avg_pool2d(F.conv2d(X, W1, b1).relu(), 2)
    h = F.avg_pool2d(F.conv2d(h, W2, b2).relu(), 2).flatten(1)
    return (h @ W3 + b3).relu() @ W4 + b4


dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
params = [numbers(*shape).requires_grad_() for shape in SHAPES]
X, y = numbers(64, 1, 28, 28, low=0, high=1), torch.arange(64) % 10

# %% The step: sum the gradients, divide by the number of all examples
own_X, own_y = X.chunk(k)[rank], y.chunk(k)[rank]
loss = F.cross_entropy(lenet(own_X, *params), own_y, reduction="sum")
loss.backward()
with torch.no_grad():
    for p in params:
        dist.all_reduce(p.grad)
        p -= 0.1 * p.grad / len(X)

# %% What came out
if rank == 0:
    print("largest gradient of b4:", round(float(params[7].grad.abs().max()), 3))
result = params
