"""DiLoCo in PyTorch.

    pip install torch
    torchrun --nproc-per-node 2 local_sgd_torch.py
"""

# %% A layer of 8 units, two workers with 16 examples each
import math
import random

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return torch.tensor(values).view(shape)


W, X, y = numbers(8, 8), numbers(32, 8, size=1), numbers(32, 8, size=1)
X, y = X[rank::2], y[rank::2]
W.requires_grad_()

# %% Four steps alone, then Nesterov along the mean drift; twice
start = W.detach().clone().requires_grad_()
inner = torch.optim.SGD([W], lr=0.5)
outer = torch.optim.SGD([start], lr=0.7, momentum=0.9, nesterov=True)
for _ in range(2):
    for _ in range(4):
        inner.zero_grad()
        (((X @ W - y) ** 2).sum() / 2 / len(X)).backward()
        inner.step()
    start.grad = (start - W).detach()  # the drift is the outer gradient
    dist.all_reduce(start.grad)
    start.grad /= k
    outer.step()
    with torch.no_grad():
        W.copy_(start)

# %% What came out
if rank == 0:
    print("first weights:", [round(float(w), 4) for w in W.detach()[0, :3]])
result = [W, W]
