"""The doctor's queries to the driver: CUDA, memory, MIG, and the links between GPUs.

The library itself only asks which GPUs MXNet can use; see `d2l_ext.devices.gpus`.
"""

import ctypes
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations

from d2l_ext.devices import gpus

#: The nearest component that two GPUs share, by NVML's number.
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
class PeerLink:
    """Two GPUs: whether they can read each other's memory, and their connection."""

    first: int
    second: int
    peers: bool
    path: str


@dataclass(frozen=True)
class More:
    """The newest `cuda` of the driver, such as `(12, 2)`, and its `links`.

    For each GPU: `memory` in bytes, and whether `mig` divides it.
    """

    cuda: tuple = ()
    memory: tuple = ()
    mig: tuple = ()
    links: tuple = ()


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def read(load=ctypes.CDLL):
    """Return NVML's `Answers`; if NVML answered, `more` is a `More`."""
    return gpus.read(load, _more)


def _more(library, handles):
    (cuda,) = gpus.query(library, "nvmlSystemGetCudaDriverVersion_v2")
    return More(
        (cuda // 1000, cuda % 1000 // 10),  # 12020 is 12.2
        tuple(_memory(library, handle) for handle in handles),
        tuple(_mig(library, handle) for handle in handles),
        tuple(_links(library, handles)),
    )


def _memory(library, handle):
    memory = _Memory()
    gpus.call_nvml(library, "nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
    return memory.total


def _mig(library, handle):
    with suppress(gpus.NvmlError):  # most GPUs cannot be divided
        now, _ = gpus.query(library, "nvmlDeviceGetMigMode", handle, answers=2,
                            kind=ctypes.c_uint)
        return now == 1
    return False


def _links(library, handles):
    for (i, one), (j, other) in combinations(enumerate(handles), 2):
        between, allowed = "by an unknown path", {READ: False, NVLINK: False}
        with suppress(gpus.NvmlError):  # not known in many virtual machines
            (path,) = gpus.query(
                library, "nvmlDeviceGetTopologyCommonAncestor", one, other
            )
            between = PATHS.get(path, f"path {path}")
        for what in allowed:
            with suppress(gpus.NvmlError):
                allowed[what] = [0] == gpus.query(
                    library, "nvmlDeviceGetP2PStatus", one, other, ctypes.c_int(what)
                )
        between = "by NVLink" if allowed[NVLINK] else between
        yield PeerLink(i, j, allowed[READ], between)
