"""Context parallelism in zigzag order, as in the chapter *Long sequences*."""

# %% Two heads of width 8, 32 positions, four devices
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices
from d2l_ext.tensor_parallel import ring_attention

npx.set_np()
devices = try_all_devices(4)
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


Q, K, V = (numbers(2, 32, 8, size=1) for _ in "QKV")

# %% Positions are cut, keys and values go around
order = ring_attention.zigzag(len(devices))
Qs, Ks, Vs = (ring_attention.split(x, order, devices) for x in (Q, K, V))
with traffic.count(devices) as moved:
    Os, _ = ring_attention.forward(Qs, Ks, Vs, causal=True)

# %% What came out
out = ring_attention.join(Os)
print("last position of head 0:", out[0, -1, :3].round(4).tolist(), "...")
result, sent = [out], {"send": sum(moved.sent)}
