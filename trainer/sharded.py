"""A Gluon network whose devices share what each would hold alone: `--shard`."""

import mxnet as mx
from mxnet import autograd

from d2l_ext.data_parallel.minibatch import split_batch
from d2l_ext.memory.shards import Shards

from .replicas import Replicas


class ShardedReplicas(Replicas):
    """A network on all `devices`, divided as `shard` says: one of `shards.STAGES`.

    `net`: a chain of blocks, as those of `networks.build`; its own arrays are let go.
    `optimizer`, `optimizer_params`, `work_load_list`, `seed`: as in `Replicas`.
    Raises as `Shards`.
    """

    def __init__(self, net, devices, shard, optimizer="sgd", optimizer_params=None,
                 work_load_list=None, seed=0):  # fmt: skip
        super().__init__(net, devices, optimizer, optimizer_params, None,
                         work_load_list=work_load_list, seed=seed)  # fmt: skip
        net.hybridize(False)  # a plan would keep the weights of its first step
        self.shards = Shards(_layers(net, devices), devices, shard, optimizer,
                             optimizer_params)  # fmt: skip
        for p in self.params:
            p._data, p._grad = [None] * len(devices), None
        self.trainer = self

    def set_learning_rate(self, lr):
        """Of all devices' optimizers."""
        for updater in self.shards.updaters:
            updater.optimizer.set_learning_rate(lr)

    def train_batch(self, X, y, step=0, n=None):
        """One step, as that of `Replicas`."""
        if self.is_random:
            mx.random.seed((self.seed * 1_000_003 + step) % 2**31)
        return self.shards.train_batch(X, y, self.loss, n, self.work_load_list)

    def _count_right(self, X, y):
        devices = self.devices[: len(y)]
        loads = self.work_load_list and self.work_load_list[: len(y)]
        X_shards, y_shards = split_batch(X, y, devices, loads)
        outs = self.shards.forward(X_shards)
        return [
            (out.argmax(axis=1).astype("int32") == y).sum()
            for out, y in zip(outs, y_shards)
        ]

    def pack(self):
        """The same arrays as of replicas that divide nothing, for any to go on from."""
        return self.shards.pack()

    def unpack(self, arrays):
        """Go on from what `pack` returned. Raises `ValueError` for other arrays."""
        self.shards.unpack(arrays)


def _layers(net, devices):
    """The blocks of a chain as `Shards` takes them, each with those that follow it and
    have no parameters."""
    layers = []
    for block in _chain(net):
        own = list(block.collect_params().values())
        if own or not layers:
            layers.append(([], []))
        layers[-1][0].append(block)
        layers[-1][1].extend(own)
    if len(layers) > 1 and not layers[0][1]:  # before the first parameters
        layers[1][0][:0] = layers.pop(0)[0]
    return [
        (_forward(blocks, own, devices), [p.data(devices[0]) for p in own])
        for blocks, own in layers
    ]


def _chain(block):
    if block._reg_params or not block._children:
        yield block
        return
    for child in block._children.values():
        yield from _chain(child)


def _forward(blocks, own, devices):
    def forward(X, params):
        i = devices.index(X.ctx)
        for p, value in zip(own, params):
            # Outside of training, oneDNN's convolution keeps its weights in an order
            # of its own, in place: of a part of another array, MXNet refuses that.
            p._data[i] = value if autograd.is_training() else value.copy()
        for block in blocks:
            X = block(X)
        for p in own:
            p._data[i] = None
        return X

    return forward
