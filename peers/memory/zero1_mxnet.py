"""ZeRO 1, as in the chapter *Sharded data parallelism*."""

# %% Four dense layers of 48 units, 64 examples, two devices
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices
from d2l_ext.memory import Shards
from d2l_ext.pipeline.microbatch import dense

npx.set_np()
devices = try_all_devices(2)
draw = random.Random(2).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


shapes = [(48, 48), (48,)] * 4
params = [numbers(*shape) for shape in shapes]
X, y = numbers(64, 48, size=1), numbers(64, 48, size=1)
layers = [(dense, [W.T, b]) for W, b in zip(params[::2], params[1::2])]
options = {"learning_rate": 0.125, "momentum": 0.875}


def half_squares(out, y):
    return ((out - y) ** 2).sum(axis=1) / 2

# %% Three steps; each device updates half of the weights
shards = Shards(layers, devices, "states", "sgd", options)
with traffic.count(devices) as moved:
    for _ in range(3):
        shards.train_batch(X, y, half_squares)

# %% What came out
kept = shards.pack()
kept = [kept[f"param.{i}"] for i in range(len(params))]
print("largest weight:", round(float(max(abs(p).max() for p in kept)), 4))
result = [p.T if p.ndim == 2 else p for p in kept]
nbytes = 3 * sum(4 * p.size for p in params)
sent = {"reduce_scatter": nbytes, "all_gather": sum(moved.sent) - nbytes}
