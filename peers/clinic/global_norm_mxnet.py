"""Clipping by the global norm, as in the chapter *Wrong without an error*."""

# %% The gradient of a tensor-parallel group: columns of W1, rows of W2; b2 is whole
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.clinic.norms import clip, global_norm
from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices

npx.set_np()
devices = try_all_devices(2)
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


W1, b1, W2, b2 = numbers(196, 32), numbers(32), numbers(32, 10), numbers(10)
halves = slice(0, 16), slice(16, 32)
parts = [[g.copyto(d) for g in (W1[:, own], b1[own], W2[own], b2)]
         for own, d in zip(halves, devices)]

# %% Squares add up; what two devices hold counts once
with traffic.count(devices) as moved:
    norms = global_norm(parts, copies=[[1, 1, 1, 2], [1, 1, 1, 2]])
clip(parts, norms, 0.5)

# %% What came out
print("norm before:", round(float(norms[1]), 4))
W1, b1, W2 = (np.concatenate([g.as_in_ctx(devices[0]) for g in same], axis)
              for same, axis in zip(zip(*parts), (1, 0, 0)))
result = [norms[0].reshape(()), W1, b1, W2, parts[1][3]]
sent = {"all_reduce": sum(moved.sent)}
