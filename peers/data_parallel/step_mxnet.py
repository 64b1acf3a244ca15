"""A step of data parallelism, as in the chapter *Data parallelism from scratch*."""

# %% LeNet, 64 images, two devices
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import lenet, step, traffic
from d2l_ext.devices import try_all_devices

npx.set_np()
draw = random.Random(1).uniform


def numbers(*shape, low=-0.1, high=0.1):
    """The same numbers in every framework."""
    return np.array([draw(low, high) for _ in range(math.prod(shape))]).reshape(shape)


params = [numbers(*shape) for shape in lenet.SHAPES]
X, y = numbers(64, 1, 28, 28, low=0, high=1), np.arange(64) % 10
devices = try_all_devices(2)
replicas = [step.get_params(params, device) for device in devices]

# %% The step: sum the gradients, divide by the number of all examples
with traffic.count(devices) as moved:
    step.train_batch(X, y, replicas, devices, lr=0.1)

# %% What came out
print("largest gradient of b4:", round(float(abs(replicas[0][7].grad).max()), 3))
result, sent = replicas[0], {"all_reduce": sum(moved.sent)}
