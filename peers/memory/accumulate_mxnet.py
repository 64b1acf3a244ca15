"""Gradient accumulation, as in *Gradient accumulation and mixed precision*."""

# %% Four dense layers of 48 units, 64 examples, two devices
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import autograd, np, npx

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
def loss(X, y, params):
    return ((dense(X, params) - y) ** 2).sum() / 2


for p in (p for params in replicas for p in params):
    p.attach_grad(grad_req="add")
for shards in zip(*(activations.pieces(X, y, 4) for X, y in own)):
    with autograd.record():
        losses = [loss(X, y, params) for params, (X, y) in zip(replicas, shards)]
    autograd.backward(losses)
    npx.waitall()  # one piece per device at a time
with traffic.count(devices) as moved:
    for same in zip(*replicas):
        allreduce([p.grad for p in same])
for p in (p for params in replicas for p in params):
    p -= 0.1 * p.grad / 64

# %% What came out
print("largest bias:", round(float(max(abs(p).max() for p in replicas[0][1::2])), 4))
result = [p.T if p.ndim == 2 else p for p in replicas[1]]
sent = {"all_reduce": sum(moved.sent)}
