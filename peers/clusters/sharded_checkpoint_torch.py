"""A checkpoint in parts, in PyTorch.

    pip install torch numpy
    torchrun --nproc-per-node 2 sharded_checkpoint_torch.py

Differs, gather: the processes tell process 0 what they will write, and that they did.
Differs, all_gather: first they exchange the lengths of these messages.
Differs, scatter: process 0 answers who writes what.
Differs, broadcast: process 0 sends a length, and says when the checkpoint is whole.
"""

# %% A matrix of 8 × 4, half of it on each device
import math
import random
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

dist.init_process_group("gloo")
rank, k = dist.get_rank(), dist.get_world_size()
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return torch.tensor(values).view(shape)


W = distribute_tensor(numbers(8, 4), init_device_mesh("cpu", (2,)), [Shard(0)])
place = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(place)

# %% Two processes write, one reads
dcp.save({"W": W}, checkpoint_id=place[0])
whole = {"W": torch.zeros(8, 4)}
if rank == 0:
    dcp.load(whole, checkpoint_id=place[0], no_dist=True)

# %% What came out
if rank == 0:
    print("first numbers:", [round(float(w), 4) for w in whole["W"][0, :3]])
    shutil.rmtree(place[0])
result = [whole["W"]] if rank == 0 else None  # only process 0 has read
