"""DiLoCo, as in the chapter *Exchanging less often*."""

# %% A layer of 8 units, two workers with 16 examples each
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.data_parallel.allreduce import allreduce
from d2l_ext.devices import try_all_devices
from d2l_ext.kvstore.local_sgd import outer_step

npx.set_np()
devices = try_all_devices(2)
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


W, X, y = numbers(8, 8), numbers(32, 8, size=1), numbers(32, 8, size=1)
own = [(X[i::2].copyto(d), y[i::2].copyto(d)) for i, d in enumerate(devices)]
weights = [W.copyto(device) for device in devices]
starts = [W.copyto(device) for device in devices]
velocity = [np.zeros_like(w) for w in weights]

# %% Four steps alone, then Nesterov along the mean drift; twice
with traffic.count(devices) as moved:
    for _ in range(2):
        for w, (X, y) in zip(weights, own):
            for _ in range(4):
                w -= 0.5 * np.dot(X.T, np.dot(X, w) - y) / len(X)
        drifts = [start - w for start, w in zip(starts, weights)]
        allreduce(drifts)
        for w, start, drift, v in zip(weights, starts, drifts, velocity):
            outer_step(start, drift / len(devices), v, lr=0.7, mom=0.9)
            w[:] = start

# %% What came out
print("first weights:", weights[0][0, :3].round(4).tolist())
result, sent = weights, {"all_reduce": sum(moved.sent)}
