"""What lies between two GPUs, and whether each may read the other's memory."""

import ctypes
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations

from d2l_ext.devices import nvml

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


def read(load=ctypes.CDLL):
    """NVML's `Answers`, with the links between GPUs."""
    return nvml.read(load, _links)


def _links(library, handles):
    for (i, one), (j, other) in combinations(enumerate(handles), 2):
        between, allowed = "by an unknown path", {READ: False, NVLINK: False}
        with suppress(nvml.NvmlError):  # not known in many virtual machines
            (path,) = nvml.numbers(
                library, "nvmlDeviceGetTopologyCommonAncestor", one, other
            )
            between = PATHS.get(path, f"path {path}")
        for what in allowed:
            with suppress(nvml.NvmlError):
                allowed[what] = [0] == nvml.numbers(
                    library, "nvmlDeviceGetP2PStatus", one, other, ctypes.c_int(what)
                )
        between = "by NVLink" if allowed[NVLINK] else between
        yield Link(i, j, allowed[READ], between)
