"""GPipe on two devices, as in the chapter *Micro-batches*."""

# %% Four dense layers of 48 units, 64 examples, two devices
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.devices import try_all_devices
from d2l_ext.pipeline import microbatch
from d2l_ext.pipeline.schedule import gpipe

npx.set_np()
devices = try_all_devices(2)
draw = random.Random(2).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


params = [numbers(*shape) for shape in [(48, 48), (48,)] * 4]
X, y = numbers(64, 48, size=1), numbers(64, 48, size=1)

turned = [p.T if p.ndim == 2 else p for p in params]
stages = microbatch.dense_stages(turned, devices)


def half_squares(out, y):
    return ((out - y) ** 2).sum(axis=1) / 2

# %% Four micro-batches through two stages
schedule = gpipe(2, 4)
microbatch.gradients(stages, schedule, X, y, half_squares)
after = [p - 0.1 * g / len(X) for s in stages for p, g in zip(s.params, s.grads)]

# %% What came out
print("stages on", [str(stage.device) for stage in stages])
result = [p.T if p.ndim == 2 else p for p in after]
sent = {"send": 2 * 1 * 4 * X.size}  # computed: activations, their gradients
