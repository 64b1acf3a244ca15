"""What the driver said of the GPUs, as plain data."""

from dataclasses import asdict, dataclass


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

    def as_dict(self):
        """The same as plain lists and dicts, for JSON."""
        return asdict(self)
