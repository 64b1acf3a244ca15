"""Loss scaling in PyTorch.

    pip install torch
    torchrun --nproc-per-node 1 loss_scaling_torch.py
"""

# %% Sixteen weights; gradients below the range of float16
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


weights, X = numbers(16).requires_grad_(), numbers(16, size=1e-5)

# %% A scale that finds itself
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=2)
sgd = torch.optim.SGD([weights], lr=0.1)
for _ in range(6):
    sgd.zero_grad()
    loss = (weights.half() * X.half()).float().sum() * 1000
    scaler.scale(loss).backward()
    scaler.step(sgd)  # unscales; skips what is not finite
    scaler.update()  # halves, or doubles after two good steps

# %% What came out
print("scale:", scaler.get_scale())
result = [weights, torch.tensor([scaler.get_scale()])]
