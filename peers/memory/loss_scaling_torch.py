"""Loss scaling in PyTorch.

    pip install torch
    torchrun --nproc-per-node 1 loss_scaling_torch.py
"""

# %% Sixteen weights at zero; eight of their gradients are too small for float16
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


weights = torch.zeros(16, requires_grad=True)
X = torch.cat([numbers(8, size=0.01), numbers(8, size=1e-8)])

# %% A scale that adjusts itself
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=2)
sgd, scales = torch.optim.SGD([weights], lr=0.1), []
for _ in range(6):
    scales.append(scaler.get_scale())
    sgd.zero_grad()
    loss = (weights.half().to(X.dtype) * X).sum()
    scaler.scale(loss).backward()
    scaler.step(sgd)  # unscales; skips what is not finite
    scaler.update()  # halves, or doubles after two good steps

# %% What came out
print("scale of each step: 2 to the", [round(math.log2(s)) for s in scales])
print(f"last weight: {float(weights.detach()[-1]):.2e}")
result = [weights[:8], weights[8:], torch.tensor(scales)]
