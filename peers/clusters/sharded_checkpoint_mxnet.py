"""A checkpoint in parts, as in *Sharded checkpoints and elastic training*."""

# %% A matrix of 8 × 4, half of it on each device
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

import tempfile

import numpy

from d2l_ext.clusters.sharded import ShardedCheckpoints

npx.set_np()
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


W = numbers(8, 4)
layout = {"W": ((8, 4), "float32")}
parts = W.asnumpy().reshape(2, 16)  # each worker's
folder = tempfile.TemporaryDirectory()

# %% Two workers write, one reads
workers = [ShardedCheckpoints(f"{folder.name}/run", layout, i, 2) for i in range(2)]
for worker, part in zip(workers, parts):
    worker.write(3, {"W": part})
alone = ShardedCheckpoints(f"{folder.name}/run", layout)
arrays, _ = alone.load(max(alone.whole()))

# %% What came out
folder.cleanup()
print("first numbers:", arrays["W"][:3].round(4).tolist())
result, sent = [numpy.reshape(arrays["W"], (8, 4))], {}
