"""Allreduce as a ring of four processes, in PyTorch.

    pip install torch
    torchrun --nproc-per-node 4 ring_torch.py
"""

# %% Four processes, which hold 1 to 4, 10 to 40, 100 to 400 …
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
data = torch.arange(1.0, 5) * 10**rank

# %% The ring
chunks = list(data.chunk(k))
right, left = (rank + 1) % k, (rank - 1) % k


def pass_on(chunk):
    arriving = torch.empty_like(chunks[0])
    both = [dist.P2POp(dist.isend, chunk, right),
            dist.P2POp(dist.irecv, arriving, left)]
    for request in dist.batch_isend_irecv(both):
        request.wait()
    return arriving


for r in range(k - 1):  # reduce-scatter: add what arrives
    chunks[(rank - 1 - r) % k] += pass_on(chunks[(rank - r) % k])
for r in range(k - 1):  # allgather: copy what arrives
    chunks[(rank - r) % k].copy_(pass_on(chunks[(rank + 1 - r) % k]))

# %% What came out
result = [torch.empty_like(data) for _ in range(k)]
dist.all_gather(result, data)
if rank == 0:
    print("process 0 has", data.int().tolist())
