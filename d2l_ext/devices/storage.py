"""The memory of each device's arrays, as MXNet's storage profiler counts it."""

import gc
from contextlib import contextmanager

from mxnet import np, npx
from mxnet.runtime import Features

from ..runtime import cores
from .timeline import borrowed_slots, profiled, raw_events

#: Bytes of a probe array: allocating it makes the profiler log its counters.
_PROBE = 4


class Memory:
    """Bytes of the arrays allocated while a `record` was open.

    `peak`: the maximum, and `held`: the bytes at the end; `{'cpu/0': bytes, …}`.
    `over_time`: every change in between, `{'cpu/0': [(milliseconds, bytes), …]}`.
    The scratch space of operators counts, too, and stays allocated; that of all CPU
    contexts counts for cpu/0.
    """

    def __init__(self):
        self.peak, self.held, self.over_time = {}, {}, {}


@contextmanager
def record(devices):
    """Count the memory allocated on each device in the `with` block; yields a `Memory`.

        with storage.record(devices) as memory:
            parts = split_block(params, devices)
        print(memory.held)

    `devices`: the contexts that the block uses. An older array that is freed inside
    the block is deducted, so free such arrays first. Do not use this inside a
    `timeline.record`: MXNet has one profiler per process. Raises `ValueError` for a CPU
    context that the profiler has no slot for. Source: `profile_memory` of
    `mxnet.profiler`. Developed in the chapter *Tensor parallelism*.
    """
    slots = _slots(devices)
    memory = Memory()
    gc.collect()  # else arrays in reference cycles might be freed inside the block

    def take(path):
        memory.peak, memory.held, memory.over_time = _read(path, slots)

    with profiled(take, profile_memory=True, profile_imperative=False,
                  profile_symbolic=False):
        probes = _probe(devices)
        try:
            yield memory
        finally:
            npx.waitall()
            probes += _probe(devices)


def _probe(devices):
    """Make the profiler log every counter: it logs one only when it changes."""
    probes = [np.zeros(_PROBE // 4, ctx=device) for device in devices]
    npx.waitall()
    return probes


def _slots(devices):
    """Return the profiler's names -> devices' names: CPUs borrow two other slots."""
    for_gpus = Features().is_enabled("CUDA")
    lent = ["gpu/0", "gpu/1"] if for_gpus else ["cpu pinned/", "cpu shared/"]
    slots = {name: name for name in (f"{d.device_type}/{d.device_id}" for d in devices)}
    borrowed = borrowed_slots(devices).items()
    return {**slots, **{lent[i - cores()]: name for i, name in borrowed}}


def _read(path, slots):
    """Return each counter's rise above its start: maximum, last, all values."""
    values = {name: [] for name in slots.values()}
    counts = [e for e in raw_events(path) if e["ph"] == "C"]
    for e in sorted(counts, key=lambda e: e["ts"]):
        ((counter, value),) = e["args"].items()
        name = slots.get(counter.replace("Memory: ", ""))
        if name:  # scratch space in pinned memory belongs to no device
            values[name].append((e["ts"], value))
    # The first probe's bytes are in every value, the second's in the last one.
    over_time = {
        name: [((ts - v[0][0]) / 1e3, value - v[0][1]) for ts, value in v]
        for name, v in values.items()
    }
    held = {name: v.pop()[1] - _PROBE for name, v in over_time.items()}
    peak = {name: max(value for _, value in v) for name, v in over_time.items()}
    return peak, held, over_time
