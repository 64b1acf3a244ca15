"""Which GPUs MXNet can use, and why not the others, which are hidden from CUDA.

The answers come from NVIDIA's driver, through its library NVML, which is part of the
driver: nothing needs to be installed, not even MXNet.
"""

import ctypes
import functools
import os
import sys
from dataclasses import dataclass

#: Compute capabilities that `mxnet-cu112==1.9.1` holds machine code for, read from
#: its fat binaries. There is no PTX that a driver could translate for later ones.
CODE = ((5, 0), (6, 0), (7, 0), (8, 0), (8, 6))
HOLDS = "MXNet 1.9.1 holds machine code only for 5.0 to 8.x"
#: The oldest driver that runs every CUDA 11 (NVIDIA, *CUDA Compatibility*).
OLDEST_DRIVER = (450, 80, 2)
#: The driver of CUDA 11.8. MXNet compiles fused operators while it runs, with the
#: compiler of 11.8, and an older driver cannot read that compiler's output.
FUSION_DRIVER = (520, 61, 5)


def code_for(capability):
    """Return the code that a GPU of `capability`, `(major, minor)`, would run.

    Machine code for X.y runs on capability X.z with z ≥ y, and nowhere else.
    Returns None if no code fits. Source: NVIDIA, *CUDA C++ Programming Guide*.
    """
    major, minor = capability
    fitting = [code for code in CODE if code[0] == major and code[1] <= minor]
    return max(fitting, default=None)


def why_not(gpu, driver):
    """Return None if MXNet runs on `gpu` with this driver, else why not, in words."""
    if driver_problem(driver):
        return f"driver {driver} is {driver_problem(driver)}"
    if not code_for(gpu.capability):
        return f"its compute capability is {dotted(gpu.capability)}, and {HOLDS}"
    return None


def version(text):
    """Return a driver's version as numbers: `'535.54.03'` is `(535, 54, 3)`."""
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def driver_problem(text):
    """Return None if a driver of this version runs CUDA 11, else the reason."""
    if version(text) >= OLDEST_DRIVER:
        return None
    return f"too old for CUDA 11, which needs {dotted(OLDEST_DRIVER)} or later"


def dotted(numbers):
    """Return `(450, 80, 2)` as `'450.80.02'`, `(8, 6)` as `'8.6'`, as NVIDIA does."""
    first, *rest = numbers
    return ".".join([str(first), *(f"{n:02}" if first > 99 else str(n) for n in rest)])


def usable(answers):
    """Return the GPUs of NVML's `answers` that MXNet can use with this driver."""
    return [gpu for gpu in answers.gpus if not why_not(gpu, answers.driver)]


def unusable(answers):
    """Return one line for each GPU that MXNet cannot use: its name and the reason."""
    reasons = [(gpu.name, why_not(gpu, answers.driver)) for gpu in answers.gpus]
    return [f"{name}: {reason}" for name, reason in reasons if reason]


#: CUDA shows a process only the GPUs that this variable names; all, if it is unset.
VISIBLE = "CUDA_VISIBLE_DEVICES"


@functools.cache
def by_driver():
    """Return the driver's `Answers` about the GPUs, queried once."""
    return read()


def reasons():
    """Return a line for each GPU here that MXNet cannot use: its name, and why not."""
    return unusable(by_driver())


def hide(environ=os.environ):
    """Hide from this process every GPU that MXNet cannot use.

    MXNet then counts only the usable GPUs, and code that falls back to CPU contexts
    does so if there are none. If there are some, a choice that the reader made among
    all GPUs (`CUDA_VISIBLE_DEVICES`) is kept. Only for the GPU build, before it loads.
    """
    fit = usable(by_driver())
    if reasons() and not (fit and VISIBLE in environ):
        environ[VISIBLE] = ",".join(gpu.uuid for gpu in fit)


def leave_fusion_off(environ=os.environ):
    """Switch MXNet's fused operators off where the driver cannot read their code.

    A value that the reader set (`MXNET_USE_FUSION`) is kept.
    """
    driver = by_driver().driver
    if driver and version(driver) < FUSION_DRIVER:
        environ.setdefault("MXNET_USE_FUSION", "0")


def refuse_hidden(mx):
    """Make `mx.gpu` raise `RuntimeError`, with the reason, for a hidden GPU.

    Replaces the function in all of MXNet's modules that have it by this name, and only
    if there is a GPU that MXNet cannot use. A context made by `mx.Context('gpu', i)` is
    not checked.
    """
    original = mx.context.gpu
    if not reasons() or hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def gpu(device_id=0):
        if device_id >= mx.context.num_gpus():
            why = "; ".join(reasons())
            raise RuntimeError(
                f"gpu({device_id}) cannot be used: {why}. Use "
                "d2l_ext.devices.try_all_devices(k), which returns CPU contexts here; "
                "`python -m bookkit.doctor` says more."
            )
        return original(device_id)

    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "mxnet" and getattr(module, "gpu", None) is original:
            module.gpu = gpu


# ---- NVML ----
# Names and numbers are those of NVIDIA's *NVML API Reference*.

LIBRARY = "libnvidia-ml.so.1"
#: NVML's error codes, and their meaning here.
FAILURES = {
    4: "this user may not query it (no permission)",
    9: "its kernel module is not loaded",
    12: "a part of it is missing",
    13: "it is too old to be queried",
    15: "a GPU has fallen off the bus",
    18: "its library and its kernel module are of different versions, as after an "
    "update: reboot",
}


@dataclass(frozen=True)
class Gpu:
    """One GPU: `capability` as `(8, 6)`, and the `uuid` by which CUDA knows it."""

    name: str
    capability: tuple
    uuid: str


@dataclass(frozen=True)
class Answers:
    """NVML's answers. Without a driver everything but `problem` is empty."""

    driver: str = ""
    gpus: tuple = ()
    problem: str = ""
    more: object = None


class NvmlError(Exception):
    """NVML answered a call with an error code."""

    def __init__(self, function, code):
        super().__init__(FAILURES.get(code, f"{function} answered with error {code}"))


def read(load=ctypes.CDLL, more=lambda library, handles: None):
    """Query NVML and return its `Answers`, whose `problem` names a failure of NVML's.

    `load`: loads NVML's library; tests replace it. `more`: a function of that library
    and the GPUs' handles, for queries that this library does not need.
    """
    try:
        library = load(LIBRARY)
    except OSError:
        return Answers(problem="there is no NVIDIA driver")
    driver = ""
    try:
        call_nvml(library, "nvmlInit_v2")
    except NvmlError as error:
        return Answers(problem=f"the NVIDIA driver does not answer: {error}")
    try:
        driver = _text(library, "nvmlSystemGetDriverVersion")
        handles = _handles(library)
        gpus = tuple(_gpu(library, handle) for handle in handles)
        return Answers(driver, gpus, more=more(library, handles))
    except NvmlError as error:
        return Answers(driver, problem=f"the NVIDIA driver failed: {error}")
    finally:
        library.nvmlShutdown()


def _handles(library):
    (count,) = query(library, "nvmlDeviceGetCount_v2", kind=ctypes.c_uint)
    handles = [ctypes.c_void_p() for _ in range(count)]
    for i, handle in enumerate(handles):
        call_nvml(library, "nvmlDeviceGetHandleByIndex_v2", i, ctypes.byref(handle))
    return handles


def _gpu(library, handle):
    capability = query(library, "nvmlDeviceGetCudaComputeCapability", handle,
                       answers=2)
    name = _text(library, "nvmlDeviceGetName", handle)
    return Gpu(name, tuple(capability), _text(library, "nvmlDeviceGetUUID", handle))


def _text(library, function, *arguments):
    buffer = ctypes.create_string_buffer(96)
    call_nvml(library, function, *arguments, buffer, ctypes.c_uint(len(buffer)))
    return buffer.value.decode(errors="replace")


def query(library, function, *arguments, answers=1, kind=ctypes.c_int):
    """Return the numbers from a function of NVML; raise `NvmlError` if it fails."""
    found = [kind() for _ in range(answers)]
    call_nvml(library, function, *arguments, *map(ctypes.byref, found))
    return [number.value for number in found]


def call_nvml(library, function, *arguments):
    """Call one of NVML's functions; raises `NvmlError`."""
    try:
        code = getattr(library, function)(*arguments)
    except AttributeError:  # an older driver does not have it
        code = 13
    if code != 0:
        raise NvmlError(function, code)
