"""Attention over its heads, as in *A Transformer over its heads*."""

# %% Attention with 4 heads of width 12, 16 positions, two devices
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices
from d2l_ext.tensor_parallel import divided_layers

npx.set_np()
devices = try_all_devices(2)
draw = random.Random(2).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


x, qkv, out = numbers(16, 48, size=1), numbers(48, 144), numbers(48, 48)
parts = [(x.copyto(d), qkv[:, i * 72 : i * 72 + 72].T.copyto(d),
          out[i * 24 : i * 24 + 24].T.copyto(d)) for i, d in enumerate(devices)]

# %% Two heads on each device, one sum at the end
ys = [divided_layers.attention(x, qkv, out, 1, 2) for x, qkv, out in parts]
with traffic.count(devices) as moved:
    ys = divided_layers.allreduce(ys)

# %% What came out
print("first position:", ys[0][0, :3].round(4).tolist(), "...")
result, sent = [ys[0]], {"all_reduce": sum(moved.sent)}
