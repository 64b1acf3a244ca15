"""One training step in MXNet, from scratch or with Gluon, on k CPU devices.

    python -m benchmarks.data_parallel.steps_mxnet scratch-2 problem.npz
    python -m benchmarks.data_parallel.steps_mxnet flat-2 problem.npz
    python -m benchmarks.data_parallel.steps_mxnet replay-2 problem.npz
    python -m benchmarks.data_parallel.steps_mxnet gluon-2-local problem.npz
"""

import d2l_ext  # noqa: F401, I001  (before MXNet's engine)
import sys

import numpy
from mxnet import autograd, gluon, np, npx

from benchmarks.scale.rosetta.mxnet_steps import gluon_lenet
from benchmarks.worker import serve
from bookkit.provenance import provenance
from d2l_ext import data_parallel
from d2l_ext.data_parallel import flat, lenet, minibatch
from d2l_ext.devices import try_all_devices

STATIC = {"static_alloc": True, "static_shape": True}


class Scratch:
    """`data_parallel.train_batch` of the book on `k` devices."""

    def __init__(self, problem, k):
        self.devices, self.lr = try_all_devices(k), float(problem["lr"])
        self.X = np.array(problem["X"])
        self.y = np.array(problem["y"], dtype="int32")
        params = [np.array(problem[f"p{i}"]) for i in range(len(lenet.SHAPES))]
        self.device_params = [data_parallel.get_params(params, d) for d in self.devices]
        self.about = {**provenance(), "devices": str(self.devices)}

    def step(self):
        data_parallel.train_batch(
            self.X, self.y, self.device_params, self.devices, self.lr
        )
        npx.waitall()

    def loss(self):
        scores = lenet.lenet(self.X, self.device_params[0])
        return float(lenet.loss(scores, self.y).mean())


class Flat(Scratch):
    """The same with `flat.train_batch`: one allreduce for all gradients."""

    def __init__(self, problem, k):
        super().__init__(problem, k)
        params = self.device_params[0]
        self.replicas = [flat.get_flat_params(params, d) for d in self.devices]
        self.device_params = [replica.params for replica in self.replicas]

    def step(self):
        flat.train_batch(self.X, self.y, self.replicas, self.devices, self.lr)
        npx.waitall()


class Replay(Scratch):
    """The same with `flat.replay_batch`: recorded once, with one allreduce."""

    def __init__(self, problem, k):
        super().__init__(problem, k)
        params = self.device_params[0]
        self.plans = flat.record_steps(params, self.X, self.y, self.devices)
        self.device_params = [plan.replica.params for plan in self.plans]

    def step(self):
        flat.replay_batch(self.X, self.y, self.plans, self.lr)
        npx.waitall()


class WithLoss(gluon.HybridBlock):
    """A network and its loss in one block: one plan, and one call, for both."""

    def __init__(self, net):
        super().__init__()
        self.net, self.loss = net, gluon.loss.SoftmaxCrossEntropyLoss()

    def hybrid_forward(self, F, X, y):
        return self.loss(self.net(X), y)


class Gluon:
    """The same network as hybridized blocks, with a `Trainer`."""

    def __init__(self, problem, k, kvstore="device"):
        self.devices = try_all_devices(k)
        self.X = np.array(problem["X"])
        self.y = np.array(problem["y"], dtype="int32")
        params = [np.array(problem[f"p{i}"]) for i in range(len(lenet.SHAPES))]
        self.net = gluon_lenet(params, self.devices)
        self.loss_of = WithLoss(self.net)
        self.loss_of.hybridize(**STATIC)
        self.trainer = gluon.Trainer(
            self.net.collect_params(), "sgd", {"learning_rate": float(problem["lr"])},
            kvstore=kvstore)
        self.about = {**provenance(), "devices": str(self.devices),
                      "kvstore": kvstore, **STATIC}

    def step(self):
        shards = minibatch.split_batch(self.X, self.y, self.devices)
        with autograd.record():
            losses = [self.loss_of(X, y) for X, y in zip(*shards)]
        autograd.backward(losses)
        self.trainer.step(len(self.X))
        npx.waitall()

    def loss(self):
        # Not through the hybridized block, whose shapes are fixed to a shard's.
        params = [p.data(self.devices[0]) for p in self.net.collect_params().values()]
        params = [p.T if p.ndim == 2 else p for p in params]
        return float(lenet.loss(lenet.lenet(self.X, params), self.y).mean())


def make(row, problem):
    """Return the job of the row `KIND-K`, and `gluon-K-KVSTORE`, with `problem`."""
    kind, k, *kvstore = row.split("-")
    job = {"scratch": Scratch, "flat": Flat, "replay": Replay, "gluon": Gluon}[kind]
    return job(problem, int(k), *kvstore)


if __name__ == "__main__":
    serve(make(sys.argv[1], numpy.load(sys.argv[2])))
