"""GPUs here that MXNet cannot use: known to this process, and hidden from CUDA."""

import functools
import os

from . import gpus, nvml, support

#: CUDA shows a process only the GPUs that this variable names; all, if it is unset.
VISIBLE = "CUDA_VISIBLE_DEVICES"


@functools.cache
def by_driver():
    """What the driver says of the GPUs (`answers.Answers`), asked once."""
    return nvml.read()


def reasons():
    """One line for each GPU here that MXNet cannot use: its name, and why not."""
    return gpus.unusable(by_driver())


def hide(environ=os.environ):
    """Let CUDA show this process no GPU that MXNet holds no machine code for.

    So MXNet counts the GPUs that it can use, and everything that falls back on CPU
    contexts without one does. A choice that the reader made among usable and other
    GPUs (`CUDA_VISIBLE_DEVICES`) is kept. Only for the GPU build, before it loads.

    Returns what was hidden, as `reasons`.
    """
    unfit, fit = reasons(), gpus.usable(by_driver())
    if not unfit or (fit and VISIBLE in environ):
        return []
    environ[VISIBLE] = ",".join(gpu.uuid for gpu in fit)
    return unfit


def leave_fusion_off(environ=os.environ):
    """Switch MXNet's fused operators off where the driver cannot read their code.

    A value that the reader set (`MXNET_USE_FUSION`) is kept.
    """
    driver = by_driver().driver
    if driver and support.version(driver) < support.FUSION_DRIVER:
        environ.setdefault("MXNET_USE_FUSION", "0")
