"""Loss scaling, as in *Gradient accumulation and mixed precision*."""

# %% Sixteen weights at zero; eight of their gradients are too small for float16
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


weights = np.zeros(16)
X = np.concatenate([numbers(8, size=0.01), numbers(8, size=1e-8)])
weights.attach_grad()

# %% A scale that adjusts itself
scaler, scales = LossScaler(scale=2.0**24, every=2), []
for _ in range(6):
    scales.append(scaler.scale)
    half = weights.astype("float16")
    half.attach_grad()
    with autograd.record():
        loss = (half.astype(X.dtype) * X).sum()
        scaled = loss * scaler.scale
    scaled.backward()
    gradient = half.grad.astype(X.dtype)
    if factor := scaler.check([[half.grad]]):  # 0: skip this step
        weights -= 0.1 * gradient / factor

# %% What came out
print("scale of each step: 2 to the", [round(math.log2(s)) for s in scales])
print(f"last weight: {float(weights[-1]):.2e}")
result, sent = [weights[:8], weights[8:], np.array(scales)], {}
