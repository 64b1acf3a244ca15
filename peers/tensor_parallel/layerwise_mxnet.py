"""A dense block divided inside its layers, as in *Splitting inside a layer*."""

# %% Dense (48, 192), ReLU, dense (192, 48); 64 examples; two devices
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext import tensor_parallel
from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices

npx.set_np()
draw = random.Random(0).uniform


def numbers(*shape, low=-0.1, high=0.1):
    """The same numbers in every framework."""
    return np.array([draw(low, high) for _ in range(math.prod(shape))]).reshape(shape)


W1, b1, W2, b2 = numbers(48, 192), numbers(192), numbers(192, 48), numbers(48)
X, y = (numbers(64, 48, low=-1, high=1) for _ in "Xy")
devices = try_all_devices(2)
parts = tensor_parallel.split_block([W1, b1, W2, b2], devices)
Xs, ys = (tensor_parallel.replicate(a, devices) for a in (X, y))

# %% Columns, then rows: one sum forward, one backward
with traffic.count(devices) as moved:
    outs, hidden = tensor_parallel.forward(Xs, parts)
    errors = [(out - t) / len(X) for out, t in zip(outs, ys)]
    dXs, gradients = tensor_parallel.backward(errors, Xs, hidden, parts)
    after = [[p - 0.1 * g for p, g in zip(*of_device)]
             for of_device in zip(parts, gradients)]

# %% What came out
print("device 0 holds", [p.shape for p in after[0]])
result = [*tensor_parallel.join_block(after), dXs[1]]
sent = {"all_reduce": sum(moved.sent)}
