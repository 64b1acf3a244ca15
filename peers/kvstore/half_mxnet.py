"""Gradients that travel in 16 bits, as in *The store by hand*."""

# %% Dense (48, 48), 64 examples, two devices
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from mxnet import autograd

from d2l_ext.data_parallel import traffic
from d2l_ext.data_parallel.allreduce import allreduce
from d2l_ext.devices import try_all_devices

npx.set_np()
devices = try_all_devices(2)
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


weights = [numbers(48, 48)]
weights.append(weights[0].copyto(devices[1]))
X, y = numbers(64, 48, size=1), numbers(64, 48, size=1)
for W in weights:
    W.attach_grad()
own = [(X[i * 32 : i * 32 + 32].copyto(d), y[i * 32 : i * 32 + 32].copyto(d))
       for i, d in enumerate(devices)]

# %% Halve, send as float16, and add
for W, (X, y) in zip(weights, own):
    with autograd.record():
        loss = ((np.dot(X, W) - y) ** 2).sum() / 2 / len(X)
    loss.backward()
half = [W.grad.astype("float16") / 2 for W in weights]
with traffic.count(devices) as moved:
    allreduce(half)
for W, g in zip(weights, half):
    W -= 0.1 * g.astype(W.dtype)

# %% What came out
print("first weights:", weights[0][0, :3].round(4).tolist())
result, sent = weights, {"all_reduce": sum(moved.sent)}
