"""A step recorded once and replayed, so that Python asks for a few things only.

Python asks for each operator of a step, and takes a core for that which a device would
use. Here autograd records the operators once. MXNet plans their memory, binds them to
the arrays of a flat replica, and runs them when it is asked twice: forward, backward.
"""

from mxnet import autograd, np

from . import lenet as model
from .allreduce import allreduce
from .flat import get_flat_params
from .minibatch import split_batch


class Plan:
    """LeNet's forward and backward pass for one shard, recorded at a `FlatReplica`.

    `X` (n, 1, 28, 28) and `y` (n,), on its device: as all that will follow.
    """

    def __init__(self, replica, X, y):
        self.replica, self.X, self.y = replica, X.copy(), y.copy()
        with autograd.record():
            losses = model.loss(model.lenet(self.X, replica.params), self.y)
        self.ones = np.ones_like(losses)  # backward starts from the sum of the losses
        graph = autograd.get_symbol(losses)
        names = graph.list_arguments()  # in the order of use: X, W1, …, b4, y
        grads = dict(zip(names[1:-1], [p.grad for p in replica.params]))
        wanted = {name: "write" if name in grads else "null" for name in names}
        arrays = [self.X, *replica.params, self.y]
        self.replay = graph.bind(X.ctx, arrays, grads, wanted)


def get_plans(params, X, y, devices):
    """A `Plan` on each of `devices`, from `params`, for minibatches like `X`, `y`."""
    shards = zip(devices, *split_batch(X, y, devices))
    return [Plan(get_flat_params(params, d), *shard) for d, *shard in shards]


def train_batch(X, y, plans, lr):
    """The step of `data_parallel.train_batch`, replayed; `plans` hold the replicas.

    Raises `ValueError` for a minibatch of another size than theirs.
    Developed in the chapter *Why is there no speed-up?*
    """
    sizes = [len(plan.y) for plan in plans]
    if len(X) != sum(sizes):
        raise ValueError(f"{len(X)} examples, and plans for {sizes}: make new plans")
    for i, plan in enumerate(plans):
        start, stop = sum(sizes[:i]), sum(sizes[: i + 1])
        X[start:stop].copyto(plan.X)
        y[start:stop].copyto(plan.y)
    for plan in plans:
        plan.replay.forward(is_train=True)
    for plan in plans:
        plan.replay.backward(plan.ones)
    allreduce([plan.replica.gradients for plan in plans])
    for replica in (plan.replica for plan in plans):
        replica.gradients *= lr  # in place, as nobody needs the gradients any more
        replica.gradients /= len(X)
        replica.values -= replica.gradients
