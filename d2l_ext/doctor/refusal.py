"""`mx.gpu(i)` of a GPU that MXNet has no code for says so, instead of CUDA later."""

import functools
import sys

from . import unusable


class UnusableGpuError(RuntimeError):
    """A GPU was asked for that MXNet cannot use."""


def install(mx):
    """Put a check into `mx.gpu`, in all of MXNet's modules that know it by this name.

    Only where there is a GPU that MXNet cannot use; elsewhere nothing is changed.
    A context made by `mx.Context('gpu', i)` is not checked.
    """
    original = mx.context.gpu
    if not unusable.reasons() or hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def gpu(device_id=0):
        if device_id >= mx.context.num_gpus():
            why = "; ".join(unusable.reasons())
            raise UnusableGpuError(
                f"gpu({device_id}) cannot be used: {why}. Use "
                "d2l_ext.devices.try_all_devices(k), which takes CPU contexts here; "
                "`python -m d2l_ext.doctor` says more."
            )
        return original(device_id)

    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "mxnet" and getattr(module, "gpu", None) is original:
            module.gpu = gpu
