"""A link that takes its time: a worker of the engine's that waits, then delivers.

CPU contexts share one memory, so a message between them is a copy, which a core makes.
Between machines it is the network that takes the time, while the cores are free.
`SlowLink` is such a network: a device of its own, on which a message takes
latency + bytes/bandwidth, one message after another, as on a wire.
"""

import ctypes
import itertools
import time
from contextlib import contextmanager

import mxnet as mx
import numpy
from mxnet.base import _LIB, check_call

from . import traffic

#: The name of a message in a timeline.
MESSAGE = "LinkCopy"
_numbers, _pending = itertools.count(1), {}


class SlowLink:
    """A link of `bandwidth` bytes a second and `latency` seconds a message.

        with SlowLink(1.25e9, beside=devices).between():  # ten gigabits a second
            allreduce(gradients)

    `device`: the context whose worker is the link, the first CPU context after those of
    `beside`; `timeline.record` needs it. `wait`: takes the time, a function of seconds.
    Raises `ValueError` for a bandwidth that is not positive, or a latency below zero.
    Developed in the chapter *Overlap*.
    """

    def __init__(self, bandwidth, latency=0.0, beside=(), wait=time.sleep):
        if not bandwidth > 0 or not latency >= 0:
            raise ValueError(
                f"a link of {bandwidth} bytes a second and a latency of {latency} s "
                "never delivers: choose a positive bandwidth, and a latency from 0"
            )
        self.bandwidth, self.latency, self.wait = bandwidth, latency, wait
        numbers = [d.device_id for d in beside if d.device_type == "cpu"]
        self.device = mx.cpu(max(numbers, default=-1) + 1)

    def send(self, x, to):
        """Copy the array `x` into `to`, both in this machine's memory; return `to`.

        Never waits: the engine starts the message when `x` has been written, and who
        reads `to` waits until it has arrived.
        """

        def deliver():
            num_bytes = x.size * numpy.dtype(x.dtype).itemsize
            self.wait(self.latency + num_bytes / self.bandwidth)
            ctypes.memmove(_address(to), _address(x), num_bytes)

        number = next(_numbers)
        _pending[number] = deliver
        context = (ctypes.c_int * 3)(self.device.device_typeid, self.device.device_id)
        read, written = ((ctypes.c_void_p * 1)(array.handle) for array in (x, to))
        check_call(_LIB.MXEnginePushSyncND(
            _deliver, ctypes.c_void_p(number), None, ctypes.byref(context),
            read, 1, written, 1, None, 0, MESSAGE.encode(),
        ))  # fmt: skip
        return to

    @contextmanager
    def between(self):
        """In the `with` block every `traffic.send` takes this link."""
        traffic.links.append(self)
        try:
            yield self
        finally:
            traffic.links.remove(self)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
def _deliver(_, number):
    _pending.pop(number)()


def _address(x):
    address = ctypes.c_void_p()
    check_call(_LIB.MXNDArrayGetData(x.handle, ctypes.byref(address)))
    return address
