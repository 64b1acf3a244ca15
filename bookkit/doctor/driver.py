"""What the doctor asks the driver besides: its CUDA, GPUs' memory and MIG, their links.

The library asks for no more than which GPUs MXNet can use; see `d2l_ext.devices.gpus`.
"""

import ctypes
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations

from d2l_ext.devices import gpus

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
class Link:
    """Two GPUs: whether each may read the other's memory, and what lies between."""

    first: int
    second: int
    peers: bool
    path: str


@dataclass(frozen=True)
class More:
    """The newest `cuda` that the driver runs, as `(12, 2)`, and `links`, each a `Link`.

    Of each GPU: `memory` in bytes, and whether it is divided by `mig`.
    """

    cuda: tuple = ()
    memory: tuple = ()
    mig: tuple = ()
    links: tuple = ()


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def read(load=ctypes.CDLL):
    """NVML's `Answers`, whose `more` is a `More` where NVML answered."""
    return gpus.read(load, _more)


def _more(library, handles):
    (cuda,) = gpus.numbers(library, "nvmlSystemGetCudaDriverVersion_v2")
    return More(
        (cuda // 1000, cuda % 1000 // 10),  # 12020 is 12.2
        tuple(_memory(library, handle) for handle in handles),
        tuple(_mig(library, handle) for handle in handles),
        tuple(_links(library, handles)),
    )


def _memory(library, handle):
    memory = _Memory()
    gpus.call(library, "nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
    return memory.total


def _mig(library, handle):
    with suppress(gpus.NvmlError):  # most GPUs cannot be divided
        now, _ = gpus.numbers(library, "nvmlDeviceGetMigMode", handle, answers=2,
                              kind=ctypes.c_uint)
        return now == 1
    return False


def _links(library, handles):
    for (i, one), (j, other) in combinations(enumerate(handles), 2):
        between, allowed = "by an unknown path", {READ: False, NVLINK: False}
        with suppress(gpus.NvmlError):  # not known in many virtual machines
            (path,) = gpus.numbers(
                library, "nvmlDeviceGetTopologyCommonAncestor", one, other
            )
            between = PATHS.get(path, f"path {path}")
        for what in allowed:
            with suppress(gpus.NvmlError):
                allowed[what] = [0] == gpus.numbers(
                    library, "nvmlDeviceGetP2PStatus", one, other, ctypes.c_int(what)
                )
        between = "by NVLink" if allowed[NVLINK] else between
        yield Link(i, j, allowed[READ], between)
