"""What NVIDIA's driver says of the GPUs, asked through its own library, NVML.

The library comes with the driver: nothing needs to be installed, MXNet least of all.
Names and numbers are those of NVIDIA's *NVML API Reference*.
"""

import ctypes
from dataclasses import dataclass
from itertools import combinations

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
#: The nearest thing that two GPUs share, by NVML's number.
PATHS = {
    0: "on one board",
    10: "through one PCIe switch",
    20: "through several PCIe switches",
    30: "through one host bridge",
    40: "within one NUMA node",
    50: "across NUMA nodes",
}
READ, NVLINK = 0, 2  # what two GPUs may be asked about each other


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
class Link:
    """Two GPUs: whether each may read the other's memory, and what lies between."""

    first: int
    second: int
    peers: bool
    path: str


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


def read(load=ctypes.CDLL):
    """Ask NVML and return its `Answers`. Never raises: a failure is `problem`.

    `load`: what loads the library, for tests.
    """
    try:
        library = load(LIBRARY)
    except OSError:
        return Answers(problem="there is no NVIDIA driver")
    try:
        _call(library, "nvmlInit_v2")
    except NvmlError as error:
        return Answers(problem=f"the NVIDIA driver does not answer: {error}")
    driver = ""
    try:
        driver = _text(library, "nvmlSystemGetDriverVersion")
        return _ask(library, driver)
    except NvmlError as error:
        return Answers(driver, problem=f"the NVIDIA driver failed: {error}")
    finally:
        library.nvmlShutdown()


def _ask(library, driver):
    gpus, handles = [], []
    for i in range(_number(library, "nvmlDeviceGetCount_v2", ctypes.c_uint)):
        handle = ctypes.c_void_p()
        _call(library, "nvmlDeviceGetHandleByIndex_v2", i, ctypes.byref(handle))
        handles.append(handle)
        gpus.append(_gpu(library, i, handle))
    links = [
        _link(library, i, j, handles[i], handles[j])
        for i, j in combinations(range(len(gpus)), 2)
    ]
    cuda = _number(library, "nvmlSystemGetCudaDriverVersion_v2")  # 12020 is 12.2
    return Answers(
        driver=driver,
        cuda=(cuda // 1000, cuda % 1000 // 10),
        gpus=tuple(gpus),
        links=tuple(links),
    )


def _gpu(library, index, handle):
    memory, major, minor = _Memory(), ctypes.c_int(), ctypes.c_int()
    _call(library, "nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
    _call(
        library, "nvmlDeviceGetCudaComputeCapability",
        handle, ctypes.byref(major), ctypes.byref(minor),
    )  # fmt: skip
    return Gpu(
        index=index,
        name=_text(library, "nvmlDeviceGetName", handle),
        memory=memory.total,
        capability=(major.value, minor.value),
        uuid=_text(library, "nvmlDeviceGetUUID", handle),
        mig=_mig(library, handle),
    )


def _mig(library, handle):
    now, later = ctypes.c_uint(), ctypes.c_uint()
    both = (ctypes.byref(now), ctypes.byref(later))
    try:
        _call(library, "nvmlDeviceGetMigMode", handle, *both)
    except NvmlError:  # most GPUs cannot be divided
        return False
    return now.value == 1


def _link(library, first, second, one, other):
    path = ctypes.c_int()
    try:
        level = ctypes.byref(path)
        _call(library, "nvmlDeviceGetTopologyCommonAncestor", one, other, level)
        between = PATHS.get(path.value, f"path {path.value}")
    except NvmlError:  # not known in many virtual machines
        between = "by an unknown path"
    if _allows(library, one, other, NVLINK):
        between = "by NVLink"
    return Link(first, second, _allows(library, one, other, READ), between)


def _allows(library, one, other, what):
    status = ctypes.c_int(-1)
    try:
        _call(
            library, "nvmlDeviceGetP2PStatus",
            one, other, ctypes.c_int(what), ctypes.byref(status),
        )  # fmt: skip
    except NvmlError:
        return False
    return status.value == 0


def _text(library, function, *arguments):
    buffer = ctypes.create_string_buffer(96)
    _call(library, function, *arguments, buffer, ctypes.c_uint(len(buffer)))
    return buffer.value.decode(errors="replace")


def _number(library, function, kind=ctypes.c_int):
    number = kind()
    _call(library, function, ctypes.byref(number))
    return number.value


def _call(library, function, *arguments):
    try:
        code = getattr(library, function)(*arguments)
    except AttributeError:  # an older driver does not have it
        code = 13
    if code != 0:
        raise NvmlError(function, code)
