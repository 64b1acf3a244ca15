"""A step with Gluon, as in the chapter *Data parallelism with Gluon and Module*."""

# %% LeNet, 64 images, two devices
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import autograd, gluon, np, npx

from benchmarks.scale.rosetta.mxnet_steps import gluon_lenet
from d2l_ext.data_parallel import costs, lenet
from d2l_ext.data_parallel.minibatch import split_batch
from d2l_ext.devices import try_all_devices

npx.set_np()
draw = random.Random(1).uniform


def numbers(*shape, low=-0.1, high=0.1):
    """The same numbers in every framework."""
    return np.array([draw(low, high) for _ in range(math.prod(shape))]).reshape(shape)


params = [numbers(*shape) for shape in lenet.SHAPES]
X, y = numbers(64, 1, 28, 28, low=0, high=1), np.arange(64) % 10
devices = try_all_devices(2)
net, loss = gluon_lenet(params, devices), gluon.loss.SoftmaxCrossEntropyLoss()

# %% The step: kvstore `device` sums the gradients, `step` divides by all examples
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
with autograd.record():
    losses = [loss(net(Xs), ys) for Xs, ys in zip(*split_batch(X, y, devices))]
for device_loss in losses:
    device_loss.backward()
trainer.step(len(X))

# %% What came out
nbytes = sum(4 * p.size for p in params)
# Computed, not counted.
sent = {"all_reduce": sum(costs.expected("naive", len(devices), nbytes).sent)}
result = [p.data(devices[1]) for p in net.collect_params().values()]
result = [p.T if p.ndim == 2 else p for p in result]
print("biases of the scores:", result[7].round(3)[:4].tolist(), "...")
