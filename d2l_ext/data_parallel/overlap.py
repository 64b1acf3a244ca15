"""Gradients in buckets, which are exchanged while backward still goes on.

Backward reaches the last layer first. A bucket is one array for the gradients of a few
layers. The allreduce of a bucket starts when all of its gradients are written.

    sizes, from the first layer     4  2  3  1  5         limit: 5
    buckets, from the last                      5         sent first
                                          3  1
                                       2                  2 + 3 + 1 would be too much
                                    4                     sent last
"""

from collections import namedtuple

import numpy
from mxnet import autograd, np

from . import flat, lenet
from .allreduce import allreduce
from .minibatch import split_batch
from .step import forward_backward

#: Some of a replica's `params`, and their `gradients`, end to end in one array.
Bucket = namedtuple("Bucket", "params gradients")


def fill_buckets(sizes, limit):
    """Which parameters share a bucket: a list of lists of their numbers.

    `sizes`: of all parameters, from the first layer on. The first bucket has the last
    of them, as many as fit `limit`. One that is larger has a bucket of its own.
    """
    buckets, room = [], 0
    for i in reversed(range(len(sizes))):
        if not buckets or sizes[i] > room:
            buckets.append([])
            room = limit
        buckets[-1].insert(0, i)
        room -= sizes[i]
    return buckets


def attach_buckets(params, limit):
    """Give `params`, arrays from the first layer on, gradients that lie in buckets.

    `limit`: bytes of a bucket at most. Returns the `Bucket`s, the last layers' first;
    gradients start at zero. Raises `ValueError` when the parameters differ in dtype.
    Source: Li et al. (2020). Developed in the chapter *Overlap*.
    """
    dtype = flat.one_dtype(params)
    buckets = []
    sizes = [p.size * numpy.dtype(dtype).itemsize for p in params]
    for numbers in fill_buckets(sizes, limit):
        some = [params[i] for i in numbers]
        total = sum(p.size for p in some)
        gradients = np.zeros(total, dtype=dtype, ctx=some[0].ctx)
        views = flat.views_of(gradients, [p.shape for p in some])
        autograd.mark_variables(some, views)
        buckets.append(Bucket(some, gradients))
    return buckets


def train_batch(X, y, replicas, devices, lr, net=lenet.lenet):
    """The step of `data_parallel.train_batch`, with an allreduce for each bucket.

    `replicas[c]`: the buckets on `devices[c]`, whose parameters are changed in place.
    `net(X, params)`: the scores, default LeNet. Nothing waits.
    Developed in the chapter *Overlap*.
    """
    X_shards, y_shards = split_batch(X, y, devices)
    device_params = [[p for b in reversed(r) for p in b.params] for r in replicas]
    forward_backward(X_shards, y_shards, device_params, net)
    for same in zip(*replicas):  # a bucket on all devices, the last layers' first
        allreduce([bucket.gradients for bucket in same])
    for p in (p for params in device_params for p in params):
        p[:] -= lr * p.grad / X.shape[0]
