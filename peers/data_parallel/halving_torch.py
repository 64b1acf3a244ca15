"""Halving and doubling on four processes, in PyTorch.

    pip install torch
    torchrun --nproc-per-node 4 halving_torch.py
"""

# %% Four processes, which hold 1 to 8, 10 to 80, 100 to 800 …
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
data = torch.arange(1.0, 9) * 10**rank


# %% Halve, add, and go back
def swap(give, partner):
    arriving = torch.empty_like(give)
    both = [dist.P2POp(dist.isend, give.contiguous(), partner),
            dist.P2POp(dist.irecv, arriving, partner)]
    for request in dist.batch_isend_irecv(both):
        request.wait()
    return arriving


own, halves = data, []
for d in (1, 2):  # keep one half, give the other to the partner
    low, high = own.chunk(2)
    keep, give = (high, low) if rank & d else (low, high)
    keep += swap(give, rank ^ d)
    halves.append((d, keep, give))
    own = keep
for d, keep, give in reversed(halves):  # the same way back, with sums
    give.copy_(swap(keep, rank ^ d))

# %% What came out
result = [torch.empty_like(data) for _ in range(k)]
dist.all_gather(result, data)
if rank == 3:
    print("process 3 has", data.int().tolist())
