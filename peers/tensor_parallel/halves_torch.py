"""Reduce-scatter and allgather in PyTorch.

    pip install torch
    torchrun --nproc-per-node 4 halves_torch.py
"""

# %% Four devices with four numbers each
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
data = torch.arange(4.0) + 10 * rank

# %% A sum in parts, then the whole
part, whole = torch.empty(1), torch.empty(4)
dist.reduce_scatter_tensor(part, data)
dist.all_gather_into_tensor(whole, part)

# %% What came out
if rank == 0:
    print("process 0 has the part", part.tolist(), "of", whole.tolist())
parts, wholes = torch.empty(4), torch.empty(16)
dist.all_gather_into_tensor(parts, part)
dist.all_gather_into_tensor(wholes, whole)
result = [parts, wholes.view(4, 4)]
