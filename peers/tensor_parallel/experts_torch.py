"""A mixture of experts in PyTorch.

    pip install torch
    torchrun --nproc-per-node 2 experts_torch.py

Differs, all_to_all: the counts of tokens travel as well, 8 bytes for each expert.
"""

# %% Four experts on two devices, 16 tokens of 8 numbers on each
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


router, X = numbers(8, 4, size=1), numbers(32, 8, size=1).chunk(k)[rank]
W1, W2 = numbers(4, 8, 16).chunk(k)[rank], numbers(4, 16, 8).chunk(k)[rank]

# %% Each token goes to its expert, and comes back
gate, expert = (X @ router).softmax(-1).max(-1)
order = expert.argsort(stable=True)
counts = expert.bincount(minlength=4)
theirs = torch.empty_like(counts)
dist.all_to_all_single(theirs, counts)  # how many are to come
give, take = counts.view(k, 2).sum(1).tolist(), theirs.view(k, 2).sum(1).tolist()
arrived = X.new_empty(sum(take), 8)
dist.all_to_all_single(arrived, X[order], take, give)
mine = torch.arange(2).repeat(k).repeat_interleave(theirs)  # of my two experts
done = torch.empty_like(arrived)
for e in range(2):
    done[mine == e] = (arrived[mine == e] @ W1[e]).relu() @ W2[e]
back = torch.empty_like(X)
dist.all_to_all_single(back, done, give, take)
Y = torch.empty_like(X)
Y[order] = back * gate[order, None]

# %% What came out
if rank == 0:
    print("tokens of process 0 by expert:", counts.tolist())
parts = [torch.empty_like(Y) for _ in range(k)]
dist.all_gather(parts, Y)
result = [torch.cat(parts)]
