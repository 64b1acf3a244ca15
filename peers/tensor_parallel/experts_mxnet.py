"""A mixture of experts, as in the chapter *Experts*."""

# %% Four experts on two devices, 16 tokens of 8 numbers on each
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices
from d2l_ext.tensor_parallel import experts

npx.set_np()
devices = try_all_devices(2)
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


router, X = numbers(8, 4, size=1), numbers(32, 8, size=1)
W1, W2 = numbers(4, 8, 16), numbers(4, 16, 8)
blocks = [[W1[e], np.zeros(16), W2[e], np.zeros(8)] for e in range(4)]
Xs = [X[:16].copyto(devices[0]), X[16:].copyto(devices[1])]
routers = [router.copyto(device) for device in devices]
parts = experts.split_experts(blocks, devices)

# %% Each token goes to its expert, and comes back
with traffic.count(devices) as moved:
    Ys, saved = experts.forward(Xs, routers, parts)

# %% What came out
print("tokens of device 0 by expert:", saved.routings[0].counts.tolist())
result, sent = [np.concatenate([Y.as_in_ctx(devices[0]) for Y in Ys])], {
    "all_to_all": sum(moved.sent)}
