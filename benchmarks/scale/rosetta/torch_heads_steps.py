"""One step of a decoder's block that is divided over its heads, in PyTorch: a program.

    python torch_heads_steps.py parallelize_module problem.npz found.npz

Needs PyTorch and NumPy, and nothing of this book: it runs in an interpreter of its own.
Weights come and go in the book's layout, as in `torch_steps.py`. After the weights it
writes the output, the gradient of the input, and those of the weights.

Developed in the chapter *A Transformer over its heads*.
"""

import sys

import torch
import torch_steps
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn import functional as F
from torch_steps import PROCESSES


class Block(nn.Module):
    """Norm, causal attention, norm, MLP: written for one device, with all heads."""

    def __init__(self, width, hidden, d):
        super().__init__()
        self.d = d
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):  # (T, batch, width)
        h = self.qkv(self.norm1(x)).unflatten(-1, (-1, 3, self.d))
        queries, keys, values = h.permute(3, 1, 2, 0, 4)  # (batch, heads, T, d)
        mixed = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.out(mixed.permute(2, 0, 1, 3).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def heads(problem, rank):
    """Two layers are cut by columns, two by rows; each process finds its heads."""
    width, hidden = problem["p6"].shape
    net = Block(width, hidden, width // int(problem["heads"]))
    X, y, net, _ = torch_steps._prepare(net, problem)
    mesh = init_device_mesh("cpu", (PROCESSES,))
    plan = {"qkv": ColwiseParallel(), "out": RowwiseParallel(),
            "up": ColwiseParallel(), "down": RowwiseParallel()}
    parallelize_module(net, mesh, plan)
    sgd = torch.optim.SGD(net.parameters(), lr=float(problem["lr"]))
    X.requires_grad_()
    out = net(X)
    (((out - y) ** 2).sum(-1).mean() / 2).backward()
    params = list(net.parameters())
    gradients = [_whole(p.grad) for p in params]
    sgd.step()
    return [*map(_whole, params), out, X.grad, *gradients]


def _whole(array):
    return array.full_tensor() if isinstance(array, DTensor) else array


# At import, for its processes import this program, too.
torch_steps.STEPS["parallelize_module"] = heads

if __name__ == "__main__":
    torch_steps.main(*sys.argv[1:])
