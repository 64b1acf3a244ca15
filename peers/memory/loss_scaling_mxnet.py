"""Loss scaling, as in *Gradient accumulation and mixed precision*."""

# %% Sixteen weights; gradients below the range of float16
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.memory.loss_scaling import LossScaler
from mxnet import autograd

npx.set_np()
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


weights, X = numbers(16), numbers(16, size=1e-5)
weights.attach_grad()

# %% A scale that finds itself
scaler = LossScaler(scale=2.0**24, every=2)
for _ in range(6):
    half = weights.astype("float16")
    half.attach_grad()
    with autograd.record():
        loss = (half * X.astype("float16")).astype("float32").sum() * 1000
        scaled = loss * scaler.scale
    scaled.backward()
    gradient = half.grad.astype("float32")
    if factor := scaler.check([[half.grad]]):
        weights -= 0.1 * gradient / factor

# %% What came out
print("scale:", scaler.scale, "skipped:", scaler.skipped)
result, sent = [weights, np.array([scaler.scale])], {}
