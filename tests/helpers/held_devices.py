"""Devices that stand still: what a step asks for, and what the others do, without them.

What runs at the same time cannot be told from a clock of a busy machine. It can be told
by holding a device: whatever is done meanwhile needs nothing of it.
"""

import d2l_ext  # noqa: F401, I001  (before mxnet)
import ctypes
import threading
from contextlib import contextmanager

from mxnet import cpu, npx
from mxnet.base import _LIB, check_call

from d2l_ext.devices import timeline

#: Two devices to hold. cpu(0) is left free: its worker has to make the arrays that come
#: from NumPy, which Python waits for.
TWO = [cpu(1), cpu(2)]
#: The name of the mark that `done_alone` puts into a timeline.
MARK = "Mark"
_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


@contextmanager
def held(*devices, at_most=30):
    """In the `with` block the engine's workers of `devices` do nothing.

    A wait for one of them would last forever: after `at_most` seconds they are let go,
    and the end of the block raises `AssertionError`. Without cpu(0), no array can be
    waited for, because MXNet has its worker do that.
    """
    go, waited_for = threading.Event(), []

    def hold(device):
        if not go.wait(at_most):
            waited_for.append(device)

    npx.waitall()
    kept = [_push(device, lambda d=device: hold(d), "Held") for device in devices]
    try:
        yield
    finally:
        go.set()
        npx.waitall()
        del kept
    assert not waited_for, f"the block waited for {waited_for}, which stood still"


def settle(device, rounds=2000):
    """Wait until `device` has done all that it can: at least `rounds` operators.

    Its worker takes what is ready in the order in which it became so. So whenever an
    empty task comes back, one operator at least has run, if any was ready.
    """
    for _ in range(rounds):
        done = threading.Event()
        kept = _push(device, done.set, "Settle")
        assert done.wait(60)
        del kept


def done_alone(step, device, devices):
    """Names of the operators that `device` runs in `step()` before any other begins.

    All other `devices` stand still until it can do no more.
    """
    others = [other for other in devices if other != device]
    with timeline.record(devices) as trace, held(*others):
        step()
        settle(device)
        kept = _push(device, lambda: None, MARK)
    del kept
    lane = trace.of(f"{device.device_type}/{device.device_id}")
    (mark,) = (e for e in lane if e.name == MARK)
    return [e.name for e in lane if e.end <= mark.start and e.name not in OWN]


def order_on(devices, step):
    """For each device the names of its operators, in order, in one `step()`.

    No device begins before Python has asked for all: so it is the order of the engine,
    not of how fast Python asks.
    """
    with timeline.record(devices) as trace, held(*devices):
        step()
    lanes = [trace.of(f"{d.device_type}/{d.device_id}") for d in devices]
    return [[e.name for e in lane if e.name not in OWN] for lane in lanes]


OWN = ("Held", "Settle", MARK)


def _push(device, function, name):
    """Have the worker of `device` call `function`; keep what is returned until then."""
    callback = _CALLBACK(lambda *_: function())
    context = (ctypes.c_int * 3)(device.device_typeid, device.device_id)
    check_call(_LIB.MXEnginePushSyncND(
        callback, None, None, ctypes.byref(context), None, 0, None, 0, None, 0,
        name.encode(),
    ))
    return callback
