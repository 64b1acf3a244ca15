"""What NVIDIA's driver says of the GPUs, asked through its own library, NVML.

The library comes with the driver: nothing needs to be installed, MXNet least of all.
Names and numbers are those of NVIDIA's *NVML API Reference*.
"""

import ctypes
from contextlib import suppress
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
    """One GPU: `memory` in bytes, `capability` as `(8, 6)`, `mig` when divided."""

    index: int
    name: str
    memory: int
    capability: tuple
    uuid: str
    mig: bool


@dataclass(frozen=True)
class Answers:
    """All that NVML said. Without a driver everything is empty but `problem`."""

    driver: str = ""
    cuda: tuple = ()
    gpus: tuple = ()
    links: tuple = ()
    problem: str = ""


class NvmlError(Exception):
    """NVML answered a call with an error code."""

    def __init__(self, function, code):
        super().__init__(FAILURES.get(code, f"{function} answered with error {code}"))


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def read(load=ctypes.CDLL, links=lambda library, handles: ()):
    """Ask NVML and return its `Answers`. Never raises: a failure is `problem`.

    `load`: what loads the library, for tests. `links`: finds the links between GPUs.
    """
    try:
        library = load(LIBRARY)
    except OSError:
        return Answers(problem="there is no NVIDIA driver")
    driver = ""
    try:
        _call(library, "nvmlInit_v2")
    except NvmlError as error:
        return Answers(problem=f"the NVIDIA driver does not answer: {error}")
    try:
        driver = _text(library, "nvmlSystemGetDriverVersion")
        return _ask(library, driver, links)
    except NvmlError as error:
        return Answers(driver, problem=f"the NVIDIA driver failed: {error}")
    finally:
        library.nvmlShutdown()


def _ask(library, driver, links):
    handles = []
    (count,) = numbers(library, "nvmlDeviceGetCount_v2", kind=ctypes.c_uint)
    for i in range(count):
        handles.append(ctypes.c_void_p())
        _call(library, "nvmlDeviceGetHandleByIndex_v2", i, ctypes.byref(handles[i]))
    gpus = tuple(_gpu(library, i, handle) for i, handle in enumerate(handles))
    (cuda,) = numbers(library, "nvmlSystemGetCudaDriverVersion_v2")  # 12020 is 12.2
    version = cuda // 1000, cuda % 1000 // 10
    return Answers(driver, version, gpus, tuple(links(library, handles)))


def _gpu(library, index, handle):
    memory = _Memory()
    _call(library, "nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
    capability = numbers(library, "nvmlDeviceGetCudaComputeCapability", handle,
                         answers=2)  # fmt: skip
    name = _text(library, "nvmlDeviceGetName", handle)
    uuid = _text(library, "nvmlDeviceGetUUID", handle)
    mig = False
    with suppress(NvmlError):  # most GPUs cannot be divided
        now, _ = numbers(library, "nvmlDeviceGetMigMode", handle, answers=2,
                         kind=ctypes.c_uint)  # fmt: skip
        mig = now == 1
    return Gpu(index, name, memory.total, tuple(capability), uuid, mig)


def _text(library, function, *arguments):
    buffer = ctypes.create_string_buffer(96)
    _call(library, function, *arguments, buffer, ctypes.c_uint(len(buffer)))
    return buffer.value.decode(errors="replace")


def numbers(library, function, *arguments, answers=1, kind=ctypes.c_int):
    """The numbers that a function of NVML's answers; raises `NvmlError`."""
    found = [kind() for _ in range(answers)]
    _call(library, function, *arguments, *map(ctypes.byref, found))
    return [number.value for number in found]


def _call(library, function, *arguments):
    try:
        code = getattr(library, function)(*arguments)
    except AttributeError:  # an older driver does not have it
        code = 13
    if code != 0:
        raise NvmlError(function, code)
