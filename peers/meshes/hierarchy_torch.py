"""An allreduce in two levels, in PyTorch.

    pip install torch
    torchrun --nproc-per-node 4 hierarchy_torch.py
"""

# %% Two hosts of two devices, eight numbers each
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
data = torch.arange(8.0) * 10**rank

# %% Inside the hosts, between them, inside
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("between", "inside"))
inside, between = mesh["inside"].get_group(), mesh["between"].get_group()
part = torch.empty(4)
dist.reduce_scatter_tensor(part, data, group=inside)
dist.all_reduce(part, group=between)
dist.all_gather_into_tensor(data, part, group=inside)

# %% What came out
if rank == 0:
    print("process 0 has", data.int().tolist())
result = [torch.empty_like(data) for _ in range(k)]
dist.all_gather(result, data)
