"""Gradient accumulation, as in *Gradient accumulation and mixed precision*."""

# %% Four dense layers of 48 units, 64 examples, two devices
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.data_parallel.allreduce import allreduce
from d2l_ext.devices import try_all_devices
from d2l_ext.memory import activations
from d2l_ext.pipeline.microbatch import dense

npx.set_np()
devices = try_all_devices(2)
draw = random.Random(2).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


params = [numbers(*shape) for shape in [(48, 48), (48,)] * 4]
X, y = numbers(64, 48, size=1), numbers(64, 48, size=1)

params = [p.T if p.ndim == 2 else p for p in params]
replicas = [[p.copyto(device) for p in params] for device in devices]
own = [(X[i * 32 : i * 32 + 32].copyto(d), y[i * 32 : i * 32 + 32].copyto(d))
       for i, d in enumerate(devices)]

# %% Four pieces on each device, one sum at the end
for params, (X, y) in zip(replicas, own):
    def loss(X, y, params=params):
        return ((dense(X, params) - y) ** 2).sum(axis=1) / 2

    activations.accumulate(activations.pieces(X, y, 4), params, loss)
with traffic.count(devices) as moved:
    for same in zip(*replicas):
        allreduce([p.grad for p in same])  # of two means
for p in (p for params in replicas for p in params):
    p -= 0.1 * p.grad / len(devices)

# %% What came out
print("largest bias:", round(float(max(abs(p).max() for p in replicas[0][1::2])), 4))
result = [p.T if p.ndim == 2 else p for p in replicas[1]]
sent = {"all_reduce": sum(moved.sent)}
