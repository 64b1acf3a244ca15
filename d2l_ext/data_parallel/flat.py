"""Fewer calls from Python: one flat array, then a recorded graph.

All parameters of a replica lie in one array, and all gradients in another. One array
needs one allreduce and one update, however many layers there are.

Python still enqueues each operator of forward and backward, on a core that a device
could use. For a `RecordedStep`, autograd records them once. MXNet plans their memory,
binds them to the arrays of a flat replica, and runs them with two calls: forward,
backward.
"""

from dataclasses import dataclass
from math import prod

from mxnet import autograd, np

from . import lenet as model
from .allreduce import allreduce
from .minibatch import split_batch
from .step import forward_backward


@dataclass
class FlatReplica:
    """One device's copy of the network.

    `params`: the parameters in their shapes, views of `values`, with gradients
    attached that are views of `gradients`. Both are arrays with one axis.
    """

    params: list
    values: np.ndarray
    gradients: np.ndarray

    def update(self, lr, n):
        """Take a step at rate `lr`; the gradients are sums over `n` examples."""
        self.values -= lr * self.gradients / n


def get_flat_params(params, device):
    """Copy the list `params` to `device`, concatenated in one array.

    Returns a `FlatReplica`; gradients start at zero. Raises `ValueError` when the
    parameters differ in dtype. Source: Li et al. (2020), with a single bucket.
    Developed in the chapter *Allreduce*.
    """
    one_dtype(params)
    values = np.concatenate([p.as_in_ctx(device).reshape(-1) for p in params])
    views = views_of(values, [p.shape for p in params])
    return FlatReplica(views, values, attach_gradients(views))


def attach_gradients(params):
    """Attach gradients that are views of one array, of one dtype; return that array."""
    total = sum(p.size for p in params)
    gradients = np.zeros(total, dtype=params[0].dtype, ctx=params[0].ctx)
    autograd.mark_variables(params, views_of(gradients, [p.shape for p in params]))
    return gradients


def one_dtype(params):
    """Return the common dtype of `params`; `ValueError` if there is none."""
    dtypes = sorted({str(p.dtype) for p in params})
    if len(dtypes) != 1:
        raise ValueError(f"parameters of {dtypes} cannot share an array: cast them")
    return dtypes[0]


def views_of(array, shapes):
    """Return consecutive parts of `array` in the `shapes`, sharing its memory."""
    views, start = [], 0
    for shape in shapes:
        stop = start + prod(shape)
        views.append(array[start:stop].reshape_view(shape))
        start = stop
    return views


def train_batch(X, y, replicas, devices, lr):
    """Take the step of `data_parallel.train_batch`, with one allreduce for all
    gradients.

    `replicas[c]`: the `FlatReplica` on `devices[c]`, changed in place.
    Developed in the chapter *Allreduce*.
    """
    X_shards, y_shards = split_batch(X, y, devices)
    forward_backward(X_shards, y_shards, [replica.params for replica in replicas])
    allreduce([replica.gradients for replica in replicas])
    for replica in replicas:
        replica.update(lr, X.shape[0])


class RecordedStep:
    """LeNet's forward and backward pass for one shard, recorded on a `FlatReplica`.

    `X` (n, 1, 28, 28) and `y` (n,), on its device. Later shards must have this size.
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


def record_steps(params, X, y, devices):
    """Return a `RecordedStep` per device, for `params` and minibatches like `X`."""
    shards = zip(devices, *split_batch(X, y, devices))
    return [RecordedStep(get_flat_params(params, d), *shard) for d, *shard in shards]


def replay_batch(X, y, recorded, lr):
    """Replay the step of `train_batch`, `recorded` as one `RecordedStep` per device.

    Raises `ValueError` for a minibatch of a different size, or too few or many labels.
    Developed in the chapter *Why is there no speed-up?*
    """
    sizes = [len(step.y) for step in recorded]
    if not len(X) == len(y) == sum(sizes):
        raise ValueError(
            f"{len(X)} examples with {len(y)} labels do not fit steps recorded for "
            f"{sizes}: record new steps"
        )
    for i, step in enumerate(recorded):
        start, stop = sum(sizes[:i]), sum(sizes[: i + 1])
        X[start:stop].copyto(step.X)
        y[start:stop].copyto(step.y)
    for step in recorded:
        step.replay.forward(is_train=True)
    for step in recorded:
        step.replay.backward(step.ones)
    allreduce([step.replica.gradients for step in recorded])
    for step in recorded:
        step.replica.update(lr, len(X))
