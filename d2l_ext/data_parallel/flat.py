"""All parameters of a replica in one array, and all gradients in another.

What is one array takes one allreduce and one update, however many layers there are.
"""

from dataclasses import dataclass
from math import prod

from mxnet import autograd, np

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


def get_flat_params(params, device):
    """Copy the list `params` to `device`, end to end in one array.

    Returns a `FlatReplica`; gradients start at zero. Raises `ValueError` when the
    parameters differ in dtype. Source: Li et al. (2020), with a single bucket.
    Developed in the chapter *Allreduce*.
    """
    one_dtype(params)
    values = np.concatenate([p.as_in_ctx(device).reshape(-1) for p in params])
    gradients = np.zeros_like(values)
    shapes = [p.shape for p in params]
    views = views_of(values, shapes)
    autograd.mark_variables(views, views_of(gradients, shapes))
    return FlatReplica(views, values, gradients)


def one_dtype(params):
    """The dtype of all `params`; `ValueError` if there are several, or none."""
    dtypes = sorted({str(p.dtype) for p in params})
    if len(dtypes) != 1:
        raise ValueError(f"parameters of {dtypes} do not fit one array: cast them")
    return dtypes[0]


def views_of(array, shapes):
    """Consecutive parts of `array` in the `shapes`, sharing its memory."""
    views, start = [], 0
    for shape in shapes:
        stop = start + prod(shape)
        views.append(array[start:stop].reshape_view(shape))
        start = stop
    return views


def train_batch(X, y, replicas, devices, lr):
    """The step of `data_parallel.train_batch`, with one allreduce for all gradients.

    `replicas[c]`: the `FlatReplica` on `devices[c]`, changed in place.
    Developed in the chapter *Allreduce*.
    """
    X_shards, y_shards = split_batch(X, y, devices)
    forward_backward(X_shards, y_shards, [replica.params for replica in replicas])
    allreduce([replica.gradients for replica in replicas])
    for replica in replicas:
        replica.values[:] -= lr * replica.gradients / X.shape[0]
