"""LARS, as in the chapter *Large batches*."""

# %% Dense (48, 48), 64 examples, two devices
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from mxnet import autograd

from d2l_ext.data_parallel import traffic
from d2l_ext.data_parallel.allreduce import allreduce
from d2l_ext.data_parallel.large_batch import Replica
from d2l_ext.devices import try_all_devices

npx.set_np()
devices = try_all_devices(2)
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


params = [numbers(48, 48), numbers(48)]
X, y = numbers(64, 48, size=1), numbers(64, 48, size=1)
own = [(X[i * 32 : i * 32 + 32].copyto(d), y[i * 32 : i * 32 + 32].copyto(d))
       for i, d in enumerate(devices)]

# %% Three steps, each of a share of the layer's length
replicas = [Replica(params, d, "lars", momentum=0.9, decay=0.01) for d in devices]
with traffic.count(devices) as moved:
    for _ in range(3):
        for replica, (X, y) in zip(replicas, own):
            with autograd.record():
                W, b = replica.params
                loss = ((np.dot(X, W) + b - y) ** 2).sum() / 2
            loss.backward()
        allreduce([replica.gradients for replica in replicas])
        for replica in replicas:
            replica.update(0.1, 64)

# %% What came out
print("biases:", replicas[0].params[1][:3].round(4).tolist(), "...")
result, sent = replicas[0].params, {"all_reduce": sum(moved.sent)}
