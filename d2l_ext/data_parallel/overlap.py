"""Gradients in buckets, exchanged while backward is still running.

Backward reaches the last layer first. A bucket is one array for the gradients of a few
layers. The allreduce of a bucket starts when all of its gradients are written.

    sizes, from the first layer     4  2  3  1  5         limit: 5
    buckets, from the last                      5         sent first
                                          3  1
                                       2                  2 + 3 + 1 would be too much
                                    4                     sent last

CPU contexts share one memory, so a message between them is a copy that a core makes.
Between machines the network takes the time, and the cores are free. `SlowLink`
simulates such a network: a worker thread of the engine waits, then delivers.
"""

import ctypes
import itertools
import time
from collections import namedtuple
from contextlib import contextmanager
from math import inf

import mxnet as mx
from mxnet.base import _LIB, check_call

from . import flat, lenet, traffic
from .allreduce import allreduce
from .minibatch import split_batch
from .step import forward_backward

#: Some of a replica's `params`, and their `gradients`, concatenated in one array.
Bucket = namedtuple("Bucket", "params gradients")
#: The name of a message of a `SlowLink` in a timeline.
MESSAGE = "LinkCopy"
_numbers, _pending = itertools.count(1), {}


def fill_buckets(sizes, limit):
    """Return which parameters share a bucket: a list of lists of their numbers.

    `sizes`: of all parameters, from the first layer on, in the unit of `limit`. The
    first bucket holds the last parameters, as many as fit in `limit`. A parameter
    larger than that has a bucket of its own.
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

    `limit`: the maximum bytes per bucket. Returns the `Bucket`s, the last layers'
    first; gradients start at zero. Raises `ValueError` when the parameters differ in
    dtype. Source: Li et al. (2020). Developed in the chapter *Overlap*.
    """
    flat.one_dtype(params)
    sizes = [p.size * p.dtype.itemsize for p in params]
    buckets = [[params[i] for i in own] for own in fill_buckets(sizes, limit)]
    return [Bucket(some, flat.attach_gradients(some)) for some in buckets]


def train_batch(X, y, replicas, devices, lr, net=lenet.lenet):
    """Take the step of `data_parallel.train_batch`, with one allreduce per bucket.

    `replicas[c]`: the buckets on `devices[c]`, whose parameters are changed in place.
    `net(X, params)`: the scores, default LeNet. Nothing waits.
    Developed in the chapter *Overlap*.
    """
    X_shards, y_shards = split_batch(X, y, devices)
    device_params = [[p for b in reversed(r) for p in b.params] for r in replicas]
    forward_backward(X_shards, y_shards, device_params, net)
    for same in zip(*replicas):  # one bucket on all devices, the last layers' first
        allreduce([bucket.gradients for bucket in same])
    for p in (p for params in device_params for p in params):
        p[:] -= lr * p.grad / X.shape[0]


class SlowLink:
    """A link of `bandwidth` bytes per second and `latency` seconds per message.

        with SlowLink(1.25e9, beside=devices).between():  # ten gigabits per second
            allreduce(gradients)

    Messages take latency + bytes/bandwidth each, one after another, as on a wire, if
    the engine has one worker per CPU context (`MXNET_CPU_WORKER_NTHREADS`, default 1).
    `device`: the context whose worker simulates the link, the first CPU context after
    those of `beside`; `timeline.record` needs it. `wait`: default `time.sleep`.
    Raises `ValueError` for a bandwidth that is not positive, and for a latency below
    zero or infinite.
    Developed in the chapter *Overlap*.
    """

    def __init__(self, bandwidth, latency=0.0, beside=(), wait=time.sleep):
        if not bandwidth > 0 or not 0 <= latency < inf:
            raise ValueError(
                f"a link of {bandwidth} bytes per second and a latency of {latency} s "
                "never delivers: choose a positive bandwidth and a finite latency of 0 "
                "or more"
            )
        self.bandwidth, self.latency, self.wait = bandwidth, latency, wait
        numbers = [d.device_id for d in beside if d.device_type == "cpu"]
        self.device = mx.cpu(max(numbers, default=-1) + 1)

    def send(self, x, to):
        """Copy the array `x` into `to`, both in this machine's memory; return `to`.

        Never waits: the engine starts the message when `x` has been written, and a
        reader of `to` waits until it has arrived. Raises `ValueError` if the arrays
        differ in shape or dtype. What a convolution has just returned may have oneDNN's
        layout, and would never be delivered, nor would a view of the array of which
        `to` is another: send a copy.
        """
        if (x.shape, x.dtype) != (to.shape, to.dtype):
            raise ValueError(
                f"an array {x.shape} of {x.dtype} cannot overwrite one {to.shape} of "
                f"{to.dtype}: give arrays of one shape and dtype"
            )

        def deliver():
            num_bytes = x.size * x.dtype.itemsize
            self.wait(self.latency + num_bytes / self.bandwidth)
            ctypes.memmove(_address(to), _address(x), num_bytes)

        number = next(_numbers)
        _pending[number] = deliver
        context = (ctypes.c_int * 3)(self.device.device_typeid, self.device.device_id)
        read, written = ((ctypes.c_void_p * 1)(array.handle) for array in (x, to))
        check_call(_LIB.MXEnginePushSyncND(
            _deliver, ctypes.c_void_p(number), None, ctypes.byref(context),
            read, 1, written, 1, None, 0, MESSAGE.encode(),
        ))
        return to

    @contextmanager
    def between(self):
        """Send every `traffic.send` in the `with` block over this link."""
        traffic.links.append(self)
        try:
            yield self
        finally:
            traffic.links.pop()


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
def _deliver(_, number):
    _pending.pop(number)()


def _address(x):
    address = ctypes.c_void_p()
    check_call(_LIB.MXNDArrayGetData(x.handle, ctypes.byref(address)))
    return address
