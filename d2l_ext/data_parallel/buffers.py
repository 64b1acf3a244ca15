"""Receive buffers: memory that is used again for the next message of its size."""

import weakref
from collections import defaultdict, deque

import numpy
from mxnet import autograd, np

#: In bytes. Below this, malloc itself hands out memory that was used before.
LARGE = 2**20
#: Buffers that no one holds, at most eight of a kind: key (device, dtype, size).
_idle = defaultdict(lambda: deque(maxlen=8))


def empty_like(x, device):
    """Return an array of the shape and dtype of `x` on `device`, values undefined.

    On a CPU context, memory of 32 MB or more is new from the operating system each
    time, and to touch it first takes several times as long as the copy that it is
    for. So a large array comes from a stock, and returns there when Python drops
    it: hold the array itself as long as you use it, a slice of it is not enough.
    The engine keeps the order: a new message waits for the last reader of the old.

    GPU contexts have MXNet's own memory pool, and a recorded value must stay as it
    was for the backward pass: both get an array that is not from the stock.
    """
    dtype = numpy.dtype(x.dtype)
    small = x.size * dtype.itemsize < LARGE
    if small or device.device_type == "gpu" or autograd.is_recording():
        return np.empty(x.shape, dtype=x.dtype, ctx=device)
    idle = _idle[device, dtype, x.size]
    memory = idle.pop() if idle else np.empty(x.size, dtype=x.dtype, ctx=device)
    array = memory.reshape_view(x.shape)
    weakref.finalize(array, idle.append, memory).atexit = False
    return array


def release():
    """Give the stock's memory back."""
    _idle.clear()
