"""One training step in MXNet, from scratch or with Gluon, on k CPU devices.

    python -m benchmarks.data_parallel.steps_mxnet scratch-2 problem.npz
    python -m benchmarks.data_parallel.steps_mxnet flat-2 problem.npz
    python -m benchmarks.data_parallel.steps_mxnet replay-2 problem.npz
    python -m benchmarks.data_parallel.steps_mxnet gluon-2-local problem.npz
"""

import d2l_ext  # noqa: F401, I001  (before MXNet's engine)
import sys

import numpy
from mxnet import np, npx

from benchmarks.worker import serve
from bookkit.provenance import provenance
from d2l_ext.data_parallel import lenet
from d2l_ext.devices import try_all_devices

from . import ladder

#: Steps of the ladder, by the first word of a row.
KINDS = {"scratch": ladder.PerArray, "flat": ladder.OneArray,
         "replay": ladder.Replayed, "gluon": ladder.Gluon}


class Job:
    """The step of the row `KIND-K`, or `gluon-K-KVSTORE`, on one minibatch."""

    def __init__(self, row, problem):
        kind, k, *kvstore = row.split("-")
        devices, self.lr = try_all_devices(int(k)), float(problem["lr"])
        self.X = np.array(problem["X"])
        self.y = np.array(problem["y"], dtype="int32")
        params = [np.array(problem[f"p{i}"]) for i in range(len(lenet.SHAPES))]
        self.take = KINDS[kind](params, len(self.X), devices, *kvstore)
        self.about = {**provenance(), "devices": str(devices)}
        if kind == "gluon":
            self.about.update(kvstore=self.take.kvstore, **ladder.STATIC)

    def step(self):
        self.take(self.X, self.y, self.lr)
        npx.waitall()

    def loss(self):
        scores = lenet.lenet(self.X, self.take.params())
        return float(lenet.loss(scores, self.y).mean())


if __name__ == "__main__":
    serve(Job(sys.argv[1], numpy.load(sys.argv[2])))
