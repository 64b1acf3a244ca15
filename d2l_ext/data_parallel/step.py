"""Data-parallel training: a replica per device, one sum of gradients per step."""

from dataclasses import dataclass, field
from time import perf_counter

from mxnet import autograd, npx

from .. import lazy
from ..devices import try_all_devices
from . import lenet as model
from .allreduce import allreduce
from .minibatch import split_batch

d2l = lazy.module("d2l.mxnet")


def get_params(params, device):
    """Copy the list `params` to `device` and attach zero gradients.

    Returns new arrays: later updates leave `params` alone.
    Follows `get_params` of *Dive into Deep Learning*, "Training on Multiple GPUs".
    """
    new_params = [p.copyto(device) for p in params]
    for p in new_params:
        p.attach_grad()
    return new_params


def train_batch(X, y, device_params, devices, lr, work_load_list=None):
    """Take one step of minibatch SGD on several devices.

    `X` (n, 1, 28, 28) and `y` (n,): the full minibatch. `device_params[c]`: the
    replica on `devices[c]`, changed in place. `lr`: learning rate, for the *mean*
    gradient of the n examples.

    Nothing waits: call `npx.waitall()` before you read a clock. Raises as
    `split_batch` does.
    Follows `train_batch` of *Dive into Deep Learning*, "Training on Multiple GPUs".
    """
    X_shards, y_shards = split_batch(X, y, devices, work_load_list)
    forward_backward(X_shards, y_shards, device_params)
    for i in range(len(device_params[0])):
        allreduce([params[i].grad for params in device_params])
    for params in device_params:
        d2l.sgd(params, lr, X.shape[0])  # the size of the full minibatch


def forward_backward(X_shards, y_shards, device_params, net=model.lenet):
    """Leave the gradient of each shard's summed loss in the `grad` of its replica.

    `net(X, params)`: the scores, default LeNet. All forward passes are enqueued, then
    all backward passes; nothing waits.
    """
    with autograd.record():
        losses = [
            model.loss(net(X_shard, params), y_shard)
            for X_shard, y_shard, params in zip(X_shards, y_shards, device_params)
        ]
    for device_loss in losses:
        device_loss.backward()


@dataclass
class History:
    """The measurements of `train`, with an entry per epoch, and the final replicas."""

    devices: list
    accuracy: list = field(default_factory=list)  # of the test set, 0 to 1
    seconds: list = field(default_factory=list)  # training only, per epoch
    steps: list = field(default_factory=list)  # minibatches, per epoch
    device_params: list = field(default_factory=list)  # [device][parameter]


def train(num_gpus, batch_size, lr, *, num_epochs=10, data=None, params=None,
          devices=None, work_load_list=None):
    """Train LeNet on `num_gpus` devices and return a `History`.

    `batch_size`: examples per step, over all devices; ignored if `data` is given. `lr`:
    learning rate. `num_epochs`: default 10. `data`: `(train_iter, test_iter)`, default
    `data.load_data(batch_size)`. `params`: initial values, default
    `lenet.init_params()`; they are copied. `devices`: default
    `try_all_devices(num_gpus)`. `work_load_list`: as in `split_batch`. The seconds are
    those of the steps and of loading their minibatches. Raises `ValueError` if there
    are not `num_gpus` `devices`, and as `split_batch` for a minibatch with fewer
    examples than devices, such as the last of an epoch.

    Follows `train` of *Dive into Deep Learning*, "Training on Multiple GPUs".
    """
    from ..data import load_data

    devices = list(devices or try_all_devices(num_gpus))
    if len(devices) != num_gpus:
        raise ValueError(f"num_gpus={num_gpus}, but {len(devices)} devices: {devices}; "
                         "give the same number")
    train_iter, test_iter = data or load_data(batch_size)
    params = params or model.init_params()
    history = History(devices, device_params=[get_params(params, d) for d in devices])
    for _ in range(num_epochs):
        start, steps = perf_counter(), 0
        for X, y in train_iter:
            train_batch(X, y, history.device_params, devices, lr, work_load_list)
            npx.waitall()
            steps += 1
        history.seconds.append(perf_counter() - start)
        history.steps.append(steps)
        history.accuracy.append(
            evaluate(history.device_params[0], test_iter, devices[0])
        )
    return history


def evaluate(params, data_iter, device):
    """Share of `data_iter` that LeNet at `params` on `device` classifies correctly."""
    return d2l.evaluate_accuracy_gpu(
        lambda X: model.lenet(X, params), data_iter, device
    )
