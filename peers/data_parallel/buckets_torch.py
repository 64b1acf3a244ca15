"""Gradients in buckets, from hooks, in PyTorch; DDP has them built in.

    pip install torch
    torchrun --nproc-per-node 2 buckets_torch.py
"""

# %% Four dense layers of 48 units, 64 examples, two devices
import math
import random

import torch
import torch.distributed as dist
from torch import nn

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
X, y = X.chunk(k)[rank], y.chunk(k)[rank]

# %% Two layers in a bucket, sent while backward goes on
buckets = [list(net[2:].parameters()), list(net[:2].parameters())]
left, works = [len(bucket) for bucket in buckets], []


def ready(i):
    left[i] -= 1
    if left[i] == 0:  # the bucket is complete: start its sum, do not wait
        flat = torch.cat([p.grad.flatten() for p in buckets[i]])
        works.append((dist.all_reduce(flat, async_op=True), flat, buckets[i]))


for i, bucket in enumerate(buckets):
    for p in bucket:
        p.register_post_accumulate_grad_hook(lambda _, i=i: ready(i))
(((net(X) - y) ** 2).sum() / 2).backward()
for work, flat, bucket in works:
    work.wait()
    for p, g in zip(bucket, flat.split([p.numel() for p in bucket])):
        p.grad.copy_(g.view_as(p))

# %% What came out
if rank == 0:
    print("buckets of", [flat.numel() for _, flat, _ in works], "numbers")
result = [p.grad.T if p.ndim == 2 else p.grad for p in net.parameters()]
