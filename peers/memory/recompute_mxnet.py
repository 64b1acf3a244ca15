"""Recomputation, as in the chapter *Where the memory goes*."""

# %% Four dense layers of 48 units, 64 examples, one device
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.memory import activations
from d2l_ext.pipeline.microbatch import dense

npx.set_np()
draw = random.Random(2).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


params = [numbers(*shape) for shape in [(48, 48), (48,)] * 4]
X, y = numbers(64, 48, size=1), numbers(64, 48, size=1)

for p in params:
    p.attach_grad()
pairs = list(zip(params[::2], params[1::2]))
layers = [lambda X, W=W, b=b: npx.relu(np.dot(X, W) + b) for W, b in pairs]


def half_squares(out, y):
    return ((out - y) ** 2).sum() / 2

# %% Two segments of two layers: only their inputs are kept
parts = activations.segments(layers, every=2)
activations.backward(parts, [(X, y)], half_squares)

# %% What came out
print("first gradients:", params[0].grad[0, :3].round(4).tolist())
result, sent = [p.grad for p in params], {}
