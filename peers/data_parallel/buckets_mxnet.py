"""Gradients in buckets, as in the chapter *Overlap*."""

# %% Four dense layers of 48 units, 64 examples, two devices
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import overlap, traffic
from d2l_ext.data_parallel.allreduce import allreduce
from d2l_ext.devices import try_all_devices
from d2l_ext.pipeline.microbatch import dense
from mxnet import autograd

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
copies = [[p.copyto(device) for p in params] for device in devices]
own = [(X[i * 32 : i * 32 + 32].copyto(d), y[i * 32 : i * 32 + 32].copyto(d))
       for i, d in enumerate(devices)]

# %% Two layers in a bucket, one sum for each
replicas = [overlap.attach_buckets(copy, limit=19_000) for copy in copies]
for copy, (X, y) in zip(copies, own):
    with autograd.record():
        loss = ((dense(X, copy) - y) ** 2).sum() / 2
    loss.backward()
with traffic.count(devices) as moved:
    for same in zip(*replicas):  # the last layers' bucket first
        allreduce([bucket.gradients for bucket in same])

# %% What came out
print("buckets of", [bucket.gradients.size for bucket in replicas[0]], "numbers")
result = [p.grad.T if p.ndim == 2 else p.grad for p in copies[0]]
sent = {"all_reduce": sum(moved.sent)}
