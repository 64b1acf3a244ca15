"""A Gluon network divided over devices: `--shard`."""

from mxnet import autograd

from d2l_ext.memory.shards import Shards

from .replicas import Replicas


class ShardedReplicas(Replicas):
    """A network divided over `devices`; `shard`: one of `shards.STAGES`.

    `net`: a chain of blocks, as from `networks.build`; its own arrays are freed. The
    other arguments: as in `Replicas`. Raises like `Shards`.
    """

    def __init__(self, shard, net, devices, optimizer="sgd", optimizer_params=None,
                 **options):
        super().__init__(net, devices, optimizer, optimizer_params, None, **options)
        net.hybridize(False)  # a plan would retain the weights of its first step
        self.shards = Shards(_layers(net, devices), devices, shard, optimizer,
                             optimizer_params)
        for p in self.params:
            p._data, p._grad = [None] * len(devices), None
        self.trainer = self
        # As arrays of undivided replicas, from which any division can resume.
        self.pack, self.unpack = self.shards.pack, self.shards.unpack

    def set_learning_rate(self, lr):
        """Set the learning rate of all devices' optimizers."""
        for updater in self.shards.updaters:
            updater.optimizer.set_learning_rate(lr)

    def train_batch(self, X, y, step=0, n=None):
        """Take one step, like that of `Replicas`."""
        self._draw(self.seed * 1_000_003 + step)
        return self.shards.train_batch(X, y, self.loss, n, self.work_load_list)

    def _outputs(self, shards):
        return self.shards.forward(shards)


def _layers(net, devices):
    """Return the blocks of a chain, grouped for `Shards`: a block without parameters
    joins the group before it, or at the beginning the first group.
    """
    layers = [([], [])]
    for block in _chain(net):
        own = list(block.collect_params().values())
        if own and layers[-1][1]:
            layers.append(([], []))
        layers[-1][0].append(block)
        layers[-1][1].extend(own)
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
            # In prediction, oneDNN's convolution reorders its weights in place, which
            # MXNet rejects for a part of another array.
            p._data[i] = value if autograd.is_training() else value.copy()
        for block in blocks:
            X = block(X)
        for p in own:
            p._data[i] = None
        return X

    return forward
