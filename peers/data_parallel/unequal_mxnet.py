"""Unequal shares, as in *Data parallelism with Gluon and Module*."""

# %% Dense (48, 48), 64 examples: 48 for one device, 16 for the other
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.data_parallel.allreduce import allreduce
from d2l_ext.data_parallel.minibatch import split_batch
from d2l_ext.devices import try_all_devices
from mxnet import autograd

npx.set_np()
devices = try_all_devices(2)
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


W, X, y = numbers(48, 48), numbers(64, 48, size=1), numbers(64, 48, size=1)
weights = [W.copyto(device) for device in devices]
for W in weights:
    W.attach_grad()

# %% Sum, then divide by all: no share counts twice
with autograd.record():
    losses = [((np.dot(Xs, W) - ys) ** 2).sum() / 2
              for W, Xs, ys in zip(weights, *split_batch(X, y, devices, [3, 1]))]
for loss in losses:
    loss.backward()
with traffic.count(devices) as moved:
    allreduce([W.grad for W in weights])
for W in weights:
    W -= 0.1 * W.grad / len(X)

# %% What came out
print("first weights:", weights[0][0, :3].round(4).tolist())
result, sent = weights, {"all_reduce": sum(moved.sent)}
