"""One step of each kind in PyTorch, from the weights of a file: run as a program.

    python torch_steps.py ddp problem.npz weights.npz

Needs PyTorch and NumPy, and nothing of this book: it runs in an interpreter of its
own. Weights come and go in the book's layout, where a dense layer's are (in, out);
`nn.Linear` stores (out, in).

Developed in the chapter *The same step in PyTorch and JAX*.
"""

import os
import sys
import tempfile

import numpy
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn import functional as F

PROCESSES, MICRO_BATCHES = 2, 4


def lenet():
    """The network of `d2l_ext.lenet` as modules."""
    return nn.Sequential(
        nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2, 2),
        nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2, 2),
        nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10),
    )


def plain(problem):
    """One process, the whole minibatch."""
    X, y, net, sgd = _prepare(lenet(), problem)
    F.cross_entropy(net(X), y).backward()
    sgd.step()
    return list(net.parameters())


def ddp(problem, rank):
    """Data parallelism: each process has a replica and its share of the minibatch."""
    X, y, net, sgd = _prepare(lenet(), problem)
    X, y = X.chunk(PROCESSES)[rank], y.chunk(PROCESSES)[rank]
    replica = nn.parallel.DistributedDataParallel(net)
    F.cross_entropy(replica(X), y).backward()  # the mean of both gradients
    sgd.step()
    return list(net.parameters())


def pipeline(problem, rank):
    """Pipeline parallelism: each process has a stage, fed by micro-batches."""
    X, y, net, sgd = _prepare(_blocks(4, problem["p1"].size), problem)
    layers = net[:2] if rank == 0 else net[2:]
    stage = PipelineStage(layers, rank, PROCESSES, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, MICRO_BATCHES, loss_fn=half_squares)
    if rank == 0:
        schedule.step(X)
    else:
        schedule.step(target=y)
    sgd.step()  # the other stage's parameters have no gradient here
    return _of_all_stages(layers)


def tensor_parallel(problem, rank):
    """Splitting inside a layer: the first by columns, the second by rows."""
    wide, narrow = problem["p0"].shape[1], problem["p3"].size
    net = nn.Sequential(
        nn.Linear(problem["p0"].shape[0], wide), nn.ReLU(), nn.Linear(wide, narrow)
    )
    X, y, net, sgd = _prepare(net, problem)
    parallelize_module(net, init_device_mesh("cpu", (PROCESSES,)),
                       {"0": ColwiseParallel(), "2": RowwiseParallel()})
    sgd = torch.optim.SGD(net.parameters(), lr=float(problem["lr"]))
    half_squares(net(X), y).backward()
    sgd.step()
    return [p.full_tensor() for p in net.parameters()]


def half_squares(out, y):
    """Half the squared distance, mean over the examples."""
    return ((out - y) ** 2).sum() / 2 / len(y)


def _blocks(count, width):
    block = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(count)]
    return nn.Sequential(*block)


def _prepare(net, problem):
    with torch.no_grad():
        for i, p in enumerate(net.parameters()):
            value = problem[f"p{i}"]
            p.copy_(torch.from_numpy(value.T if value.ndim == 2 else value))
    sgd = torch.optim.SGD(net.parameters(), lr=float(problem["lr"]))
    y = torch.from_numpy(problem["y"])
    return torch.from_numpy(problem["X"]), y, net, sgd


def _of_all_stages(layers):
    mine, everyones = [p.detach() for p in layers.parameters()], [None] * PROCESSES
    distributed.all_gather_object(everyones, mine)
    return [p for stage in everyones for p in stage]


def _save(path, params):
    arrays = [p.detach().numpy() for p in params]
    arrays = [a.T if a.ndim == 2 else a for a in arrays]
    numpy.savez(path, **{f"p{i}": a for i, a in enumerate(arrays)})


def _process(rank, step, source, target, meeting):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group("gloo", init_method=f"file://{meeting}",
                                   rank=rank, world_size=PROCESSES)
    params = STEPS[step](dict(numpy.load(source)), rank)
    if rank == 0:
        _save(target, params)
    distributed.destroy_process_group()


STEPS = {"plain": plain, "ddp": ddp, "pipeline": pipeline,
         "tensor_parallel": tensor_parallel}


def main(step, source, target):
    torch.set_num_threads(1)
    if step == "plain":
        return _save(target, plain(dict(numpy.load(source))))
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(
            _process, (step, source, target, os.path.join(folder, "meeting")),
            nprocs=PROCESSES)


if __name__ == "__main__":
    main(*sys.argv[1:])
