"""The same training step in PyTorch: one process, or two with DistributedDataParallel.

    steps_torch torch-1 FILE.npz   one process, one thread
    steps_torch torch-2 FILE.npz   one process, two threads
    steps_torch ddp-2 FILE.npz   two processes of one thread, gloo
    steps_torch ddp-2-compile-last FILE.npz   compiled, with channels as the last axis

The shards lie on their process before the clock starts.
"""

import os
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.nn import functional as F

from benchmarks.scale.rosetta import torch_steps
from benchmarks.worker import serve


class Plain:
    """One process, `threads` threads for each operator.

    `options`: "last" for images and weights with channels as the last axis, "compile"
    for `torch.compile`.
    """

    def __init__(self, problem, threads, options, rank=0, ranks=1):
        torch.set_num_threads(threads)
        order = torch.channels_last if "last" in options else torch.contiguous_format
        X, y, net, _ = torch_steps._prepare(Lenet(*torch_steps.lenet()), problem)
        self.net = net.to(memory_format=order)
        self.all_X, self.all_y = X.contiguous(memory_format=order), y.long()
        size = len(self.all_X) // ranks
        self.X = self.all_X[rank * size : (rank + 1) * size].contiguous(
            memory_format=order)
        self.y = self.all_y[rank * size : (rank + 1) * size].contiguous()
        self.sgd = torch.optim.SGD(self.net.parameters(), lr=float(problem["lr"]))
        last = self.net[3].weight.is_contiguous(memory_format=torch.channels_last)
        self.about = {"torch": torch.__version__, "numpy": numpy.__version__,
                      "python": sys.version.split()[0], "threads": threads,
                      "channels": "last" if last else "first"}
        self.model, self.options = self.net, options

    def compiled(self):
        """Return this job, compiled if that is asked for.

        Raises `RuntimeError` if `torch.compile` compiled nothing.
        """
        if "compile" in self.options:
            self.model = torch.compile(self.model)
            F.cross_entropy(self.model(self.X), self.y).backward()
            graphs = counters["stats"]["unique_graphs"]
            if not graphs:
                raise RuntimeError("torch.compile compiled nothing")
            self.about["graphs"] = graphs
        return self

    def step(self):
        self.sgd.zero_grad(set_to_none=True)
        F.cross_entropy(self.model(self.X), self.y).backward()
        self.sgd.step()

    def loss(self):
        with torch.no_grad():
            return float(F.cross_entropy(self.net(self.all_X), self.all_y))


class Distributed(Plain):
    """One of `ranks` processes. Rank 0 starts the others and tells them to step."""

    def __init__(self, problem, argv, options, rank, ranks, meeting):
        super().__init__(problem, 1, options, rank, ranks)
        self.others = [
            subprocess.Popen([*argv, str(other), meeting], stdin=subprocess.PIPE)
            for other in range(1, ranks if rank == 0 else 0)
        ]
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks
        )
        self.model = nn.parallel.DistributedDataParallel(
            self.net, gradient_as_bucket_view=True)
        self.about.update(processes=ranks, backend="gloo")

    def expect(self, count):
        for other in self.others:
            other.stdin.write(b"%d\n" % count)
            other.stdin.flush()

    def follow(self):
        """Serve as a rank other than 0 until the end."""
        for line in sys.stdin:
            for _ in range(int(line)):
                self.step()

    def close(self):
        for other in self.others:
            other.stdin.close()
            other.wait()


class Lenet(nn.Sequential):
    """Has a `forward` of its own: in DDP, `torch.compile` leaves PyTorch's as it is."""

    def forward(self, X):
        return super().forward(X)


def main(row, path, rank="0", meeting=None):
    problem, (kind, count, *options) = numpy.load(path), row.split("-")
    if kind == "torch":
        return serve(Plain(problem, int(count), options).compiled())
    argv = [sys.executable, "-m", "benchmarks.data_parallel.steps_torch", row, path]
    if meeting:
        job = Distributed(problem, argv, options, int(rank), int(count), meeting)
        return job.compiled().follow()
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "meeting")
        job = Distributed(problem, argv, options, 0, int(count), meeting)
        serve(job.compiled())
        job.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
