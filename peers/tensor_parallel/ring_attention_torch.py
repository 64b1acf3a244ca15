"""Ring attention in PyTorch.

    pip install torch
    torchrun --nproc-per-node 4 ring_attention_torch.py
"""

# %% Two heads of width 8, 32 positions, four devices
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


Q, K, V = (numbers(2, 32, 8, size=1).chunk(k, dim=1)[rank] for _ in "QKV")

# %% Queries stay, keys and values go around
KV, place = torch.stack([K, V]), torch.arange(8)
top, total, out = torch.full((2, 8, 1), -torch.inf), 0, 0
for r in range(k):
    owner = (rank - r) % k  # whose keys and values are here
    later = place + 8 * owner > place[:, None] + 8 * rank
    scores = (Q @ KV[0].mT / 8**0.5).masked_fill(later, -torch.inf)
    new = torch.maximum(top, scores.amax(-1, keepdim=True))
    p, old = (scores - new).exp(), (top - new).exp()
    total, out, top = total * old + p.sum(-1, keepdim=True), out * old + p @ KV[1], new
    if r < k - 1:
        arriving = torch.empty_like(KV)
        both = [dist.P2POp(dist.isend, KV, (rank + 1) % k),
                dist.P2POp(dist.irecv, arriving, (rank - 1) % k)]
        for request in dist.batch_isend_irecv(both):
            request.wait()
        KV = arriving
out = out / total

# %% What came out
parts = [torch.empty_like(out) for _ in range(k)]
dist.all_gather(parts, out.contiguous())
result = [torch.cat(parts, dim=1)]
if rank == 0:
    last = [round(float(o), 4) for o in result[0][0, -1, :3]]
    print("last position of head 0:", last, "...")
