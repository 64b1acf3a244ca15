"""What NVML answers on a number of machines, and a library that gives these answers.

Written down from NVIDIA's NVML API Reference, the mock servers of NVIDIA's go-nvml
(A100, H100, H200, B200) and published output of nvidia-smi: no such machine was here.

An answer is a value, a list of values, or `Error(code)`. The library's functions are
real C functions, with the types of `nvml.h`, so a caller that passes the wrong ones
fails.
"""

import ctypes
from dataclasses import dataclass, field

MIB = 2**20
UINT, INT, ENUM = ctypes.c_uint, ctypes.c_int, ctypes.c_int
HANDLE = ctypes.c_void_p


@dataclass(frozen=True)
class Error:
    code: int


NOT_SUPPORTED = Error(3)


@dataclass(frozen=True)
class Card:
    name: str
    mib: int
    capability: tuple
    mig: object = NOT_SUPPORTED
    uuid: str = "GPU-00000000-0000-0000-0000-000000000000"
    handle: object = None  # or the error with which it is asked for


@dataclass(frozen=True)
class Machine:
    cards: list = field(default_factory=list)
    driver: str = "550.54.15"
    cuda: int = 12040
    init: int = 0
    path: object = 30  # between any two cards
    peers: object = 0  # may each read the other's memory: 0 is yes
    nvlink: object = NOT_SUPPORTED
    lacks: tuple = ()  # functions that this driver does not have


M40 = Card("Tesla M40 24GB", 22945, (5, 2))
P40 = Card("Tesla P40", 24576, (6, 1))
V100 = Card("Tesla V100-SXM2-16GB", 16384, (7, 0))
T4 = Card("Tesla T4", 15360, (7, 5))
A100 = Card("NVIDIA A100-PCIE-40GB", 40960, (8, 0), mig=(0, 0))
A100_MIG = Card("NVIDIA A100-PCIE-40GB", 40960, (8, 0), mig=(1, 1))
A10 = Card("NVIDIA A10", 23028, (8, 6), uuid="GPU-a10")
L4 = Card("NVIDIA L4", 23034, (8, 9))
K80 = Card("Tesla K80", 11441, (3, 7))
H100 = Card("NVIDIA H100 80GB HBM3", 81559, (9, 0), mig=(0, 0))
H200 = Card("NVIDIA H200", 143771, (9, 0), mig=(0, 0))
B200 = Card("NVIDIA B200", 183359, (10, 0), mig=(0, 0), uuid="GPU-b200")
RTX_5090 = Card("NVIDIA GeForce RTX 5090", 32607, (12, 0))

USABLE = {card.name: card for card in (M40, P40, V100, T4, A100, A10, L4)}
UNUSABLE = {card.name: card for card in (K80, H100, H200, B200, RTX_5090)}


class Library:
    """NVML on `machine`; its attributes are the functions that `gpus.read` calls."""

    def __init__(self, machine):
        self.machine = machine
        self.shut_down = False
        self.functions = self._functions()

    def __getattr__(self, name):
        if name in self.machine.lacks or name not in self.functions:
            raise AttributeError(name)
        return self.functions[name]

    def _functions(self):
        here, cards = self.machine, self.machine.cards
        of, to = ctypes.CFUNCTYPE, ctypes.POINTER
        pointer = ctypes.c_void_p

        def put(value, *targets):
            """Store `value` through the pointers, or return its error code."""
            if isinstance(value, Error):
                return value.code
            values = value if isinstance(value, tuple) else (value,)
            for target, one in zip(targets, values):
                target[0] = one
            return 0

        def text(value, buffer, length):
            data = value.encode() + b"\0"
            assert len(data) <= length
            ctypes.memmove(buffer, data, len(data))
            return 0

        def memory(device, target):
            ctypes.cast(target, to(Memory))[0].total = cards[device - 1].mib * MIB
            return 0

        def shutdown():
            self.shut_down = True
            return 0

        class Memory(ctypes.Structure):
            _fields_ = [(n, ctypes.c_ulonglong) for n in ("total", "free", "used")]

        def device_text(get):
            kind = of(INT, HANDLE, pointer, UINT)
            return kind(lambda d, buffer, n: text(get(cards[d - 1]), buffer, n))

        def two(kind, get):
            made = of(INT, HANDLE, to(kind), to(kind))
            return made(lambda d, one, other: put(get(cards[d - 1]), one, other))

        return {
            "nvmlInit_v2": of(INT)(lambda: here.init),
            "nvmlShutdown": of(INT)(shutdown),
            "nvmlSystemGetDriverVersion": of(INT, pointer, UINT)(
                lambda buffer, n: text(here.driver, buffer, n)),
            "nvmlSystemGetCudaDriverVersion_v2": of(INT, to(INT))(
                lambda target: put(here.cuda, target)),
            "nvmlDeviceGetCount_v2": of(INT, to(UINT))(
                lambda target: put(len(cards), target)),
            "nvmlDeviceGetHandleByIndex_v2": of(INT, UINT, to(pointer))(
                lambda index, target: put(cards[index].handle or index + 1, target)),
            "nvmlDeviceGetName": device_text(lambda card: card.name),
            "nvmlDeviceGetUUID": device_text(lambda card: card.uuid),
            "nvmlDeviceGetMemoryInfo": of(INT, HANDLE, pointer)(memory),
            "nvmlDeviceGetCudaComputeCapability": two(INT, lambda c: c.capability),
            "nvmlDeviceGetMigMode": two(UINT, lambda c: c.mig),
            "nvmlDeviceGetTopologyCommonAncestor": of(INT, HANDLE, HANDLE, to(ENUM))(
                lambda one, other, target: put(here.path, target)),
            "nvmlDeviceGetP2PStatus": of(INT, HANDLE, HANDLE, ENUM, to(ENUM))(
                lambda one, other, what, target: put(
                    {0: here.peers, 2: here.nvlink}[what], target)),
        }


def no_library(name):
    """What loading NVML does on a machine without a driver."""
    raise OSError(f"{name}: cannot open shared object file: No such file or directory")
