"""1F1B on two processes, in PyTorch.

    pip install torch numpy
    torchrun --nproc-per-node 2 one_f_one_b_torch.py

Differs, send: each stage also tells the next, once, which shapes will come.
"""

# %% Four dense layers of 48 units, 64 examples, two devices
import math
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
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


def half_squares(out, y):
    """Half the squared distance, the mean over the examples."""
    return ((out - y) ** 2).sum() / 2 / len(out)

# %% Four micro-batches through two stages
parts = [net[:2] if rank == 0 else net[2:]]
stage = PipelineStage(parts[0], rank, k, torch.device("cpu"))
schedule = Schedule1F1B(stage, 4, loss_fn=half_squares)
if rank == 0:
    schedule.step(X)
else:
    schedule.step(target=y)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
sgd.step()  # layers of the other process have no gradient here

# %% What came out
everyones = [None] * k
dist.all_gather_object(everyones, [list(own.parameters()) for own in parts])
if rank == 0:
    print("process 0 has", len(parts), "stage" if len(parts) == 1 else "stages")
ordered = [stage for turn in zip(*everyones) for stage in turn]
result = [p.T if p.ndim == 2 else p for stage in ordered for p in stage]
