"""Five steps of Adam with divided states or weights, in PyTorch: run as a program.

    python torch_sharded_steps.py fsdp2 problem.npz weights.npz

Needs PyTorch and NumPy, and nothing of this book: it runs in an interpreter of its own.
Weights come and go in the book's layout, as in `torch_steps.py`.

Developed in the chapter *Sharded data parallelism*.
"""

import sys

import torch
import torch_steps
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch_steps import PROCESSES, half_squares

STEPS, EPSILON = 5, 1e-12


def replicas(problem, rank):
    """Whole replicas: DistributedDataParallel, and Adam on each process."""
    net, X, y = _part(problem, rank)
    adam = torch.optim.Adam(net.parameters(), float(problem["lr"]), eps=EPSILON)
    _train(nn.parallel.DistributedDataParallel(net), adam, X, y)
    return list(net.parameters())


def zero1(problem, rank):
    """Whole replicas, and the states of Adam divided: by whole parameters."""
    net, X, y = _part(problem, rank)
    adam = ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam,
                                   lr=float(problem["lr"]), eps=EPSILON)
    _train(nn.parallel.DistributedDataParallel(net), adam, X, y)
    return list(net.parameters())


def fsdp2(problem, rank):
    """Weights, gradients and states divided, layer by layer."""
    net, X, y = _part(problem, rank)
    mesh = init_device_mesh("cpu", (PROCESSES,))
    for layer in net:
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    adam = torch.optim.Adam(net.parameters(), float(problem["lr"]), eps=EPSILON)
    _train(net, adam, X, y)
    return [p.full_tensor() for p in net.parameters()]


def _part(problem, rank):
    net = torch_steps._blocks(4, problem["p1"].size)
    X, y, net, _ = torch_steps._prepare(net, problem)
    return net, X.chunk(PROCESSES)[rank], y.chunk(PROCESSES)[rank]


def _train(net, adam, X, y):
    for _ in range(STEPS):
        adam.zero_grad()
        half_squares(net(X), y).backward()  # the mean over all processes
        adam.step()


# At import, for its processes import this program, too.
torch_steps.STEPS.update(replicas=replicas, zero1=zero1, fsdp2=fsdp2)

if __name__ == "__main__":
    torch_steps.main(*sys.argv[1:])
