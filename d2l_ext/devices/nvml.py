"""What NVIDIA's driver says of the GPUs, asked through its own library, NVML.

The library comes with the driver: nothing needs to be installed, MXNet least of all.
Names and numbers are those of NVIDIA's *NVML API Reference*.
"""

import ctypes
from dataclasses import dataclass

LIBRARY = "libnvidia-ml.so.1"
#: What NVML answers when it cannot even begin, and what that means here.
FAILURES = {
    4: "this user may not ask it (no permission)",
    9: "its kernel module is not loaded",
    12: "a part of it is missing",
    13: "it is too old to be asked",
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
    """What NVML said. Without a driver everything is empty but `problem`."""

    driver: str = ""
    gpus: tuple = ()
    problem: str = ""
    more: object = None


class NvmlError(Exception):
    """NVML answered a call with an error code."""

    def __init__(self, function, code):
        super().__init__(FAILURES.get(code, f"{function} answered with error {code}"))


def read(load=ctypes.CDLL, more=lambda library, handles: None):
    """Ask NVML and return its `Answers`. Never raises: a failure is `problem`.

    `load`: what loads the library, for tests. `more`: asks for more than this library
    needs, a function of NVML's library and the handles of the GPUs.
    """
    try:
        library = load(LIBRARY)
    except OSError:
        return Answers(problem="there is no NVIDIA driver")
    driver = ""
    try:
        call(library, "nvmlInit_v2")
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
    (count,) = numbers(library, "nvmlDeviceGetCount_v2", kind=ctypes.c_uint)
    handles = [ctypes.c_void_p() for _ in range(count)]
    for i, handle in enumerate(handles):
        call(library, "nvmlDeviceGetHandleByIndex_v2", i, ctypes.byref(handle))
    return handles


def _gpu(library, handle):
    capability = numbers(library, "nvmlDeviceGetCudaComputeCapability", handle,
                         answers=2)  # fmt: skip
    name = _text(library, "nvmlDeviceGetName", handle)
    return Gpu(name, tuple(capability), _text(library, "nvmlDeviceGetUUID", handle))


def _text(library, function, *arguments):
    buffer = ctypes.create_string_buffer(96)
    call(library, function, *arguments, buffer, ctypes.c_uint(len(buffer)))
    return buffer.value.decode(errors="replace")


def numbers(library, function, *arguments, answers=1, kind=ctypes.c_int):
    """The numbers that a function of NVML's answers; raises `NvmlError`."""
    found = [kind() for _ in range(answers)]
    call(library, function, *arguments, *map(ctypes.byref, found))
    return [number.value for number in found]


def call(library, function, *arguments):
    """Call a function of NVML's; raises `NvmlError`."""
    try:
        code = getattr(library, function)(*arguments)
    except AttributeError:  # an older driver does not have it
        code = 13
    if code != 0:
        raise NvmlError(function, code)
