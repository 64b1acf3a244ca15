"""LARS in PyTorch, which has none: written here as a subclass of SGD.

    pip install torch
    torchrun --nproc-per-node 2 lars_torch.py
"""

# %% Dense (48, 48), 64 examples, two devices
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


W, b = numbers(48, 48).requires_grad_(), numbers(48).requires_grad_()
X, y = numbers(64, 48, size=1).chunk(k)[rank], numbers(64, 48, size=1).chunk(k)[rank]


# %% Three steps, each of a share of the layer's length
class LARS(torch.optim.SGD):
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                g, w.grad = w.grad, w.grad + 0.01 * w
                if w.ndim > 1:
                    w.grad *= w.norm() / (g.norm() + 0.01 * w.norm())
        super().step()


lars = LARS([W, b], lr=0.1, momentum=0.9)
for _ in range(3):
    lars.zero_grad()
    (((X @ W + b - y) ** 2).sum() / 2 / 64).backward()
    for w in (W, b):
        dist.all_reduce(w.grad)
    lars.step()

# %% What came out
if rank == 0:
    print("biases:", [round(float(x), 4) for x in b.detach()[:3]], "...")
result = [W, b]
