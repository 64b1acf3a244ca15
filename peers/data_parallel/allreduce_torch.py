"""The sum on every process, in PyTorch.

    pip install torch
    torchrun --nproc-per-node 4 allreduce_torch.py
"""

# %% Four processes, which hold ones, twos, threes and fours
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
data = torch.ones(4) * (rank + 1)

# %% The sum, in place; gloo has a ring, NCCL chooses the way
dist.all_reduce(data, op=dist.ReduceOp.SUM)

# %% What came out
if rank == 3:
    print("process 3 has", data.tolist())
result = [data]
