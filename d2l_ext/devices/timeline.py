"""What each device did, and when: the engine's profiler as a chart per device."""

from contextlib import contextmanager

from ..palette import DEVICE_COLOURS, KIND_HATCHES, bar
from ..runtime import cores
from .profile_dump import Event, kind_of, profiled, read

__all__ = [
    "DEVICE_COLOURS", "KIND_HATCHES",
    "Event", "Timeline", "kind_of", "last_cpu", "plot", "record", "without_slot",
]  # fmt: skip


class Timeline:
    """Operators that ran while a `record` was open.

    `events`: list of `Event`, ordered by start. `devices`: names such as
    `'cpu/0'`, those that worked, in order.
    """

    def __init__(self):
        self.events = []

    @property
    def devices(self):
        return sorted({e.device for e in self.events})

    def busy(self, device=None):
        """Milliseconds in which `device` (default: any device) worked."""
        spans = [e for e in self.events if device in (None, e.device)]
        return sum(end - start for start, end in _union(spans))

    def overlap(self):
        """Milliseconds in which at least two devices worked at the same time."""
        return _at_least_two([_union(self.of(d)) for d in self.devices])

    def span(self):
        """Milliseconds from the first start to the last end; 0.0 without events."""
        if not self.events:
            return 0.0
        return max(e.end for e in self.events) - min(e.start for e in self.events)

    def of(self, device):
        """The events of one device."""
        return [e for e in self.events if e.device == device]

    def __str__(self):
        lanes = [f"{d} works {self.busy(d):.0f} ms" for d in self.devices]
        return ", ".join([*lanes, f"{self.overlap():.0f} ms side by side"])


@contextmanager
def record(devices=()):
    """Profile the operators run inside the `with` block; yields a `Timeline`.

        with timeline.record() as trace:
            train_batch(X, y, device_params, devices, lr)
        timeline.plot(trace)

    Waits for the engine before and after, so that the block's work, all of it
    and nothing else, is recorded. The timeline is filled when the block ends.
    One record at a time: MXNet has one profiler per process.

    `devices`: the contexts that the block uses; needed for more CPU contexts than
    cores. MXNet's profiler has a slot for each core and two more, `cpu pinned` and
    `cpu shared`, which CPU contexts with higher numbers borrow. One beyond these
    writes outside the table and ends the process.

    Raises `ValueError` when `devices` holds such a context.
    Source: `mxnet.profiler`. Developed in the chapter *Devices*.
    """
    borrowed = borrowed_slots(devices)
    trace = Timeline()

    def take(path):
        trace.events = read(path, borrowed)

    with profiled(take, profile_imperative=True, profile_symbolic=True):
        yield trace


def borrowed_slots(devices):
    """Names for the profiler's slots that CPU contexts beyond the cores borrow."""
    beyond = without_slot(devices)
    if beyond:
        raise ValueError(
            f"{beyond[0]} cannot be recorded: MXNet's profiler has room for cpu(0) to "
            f"cpu({last_cpu()}) on {cores()} cores. Use fewer CPU contexts."
        )
    numbers = [d.device_id for d in devices if d.device_type == "cpu"]
    return {i: f"cpu/{i}" for i in numbers if i >= cores()}


def last_cpu():
    """The highest number of a CPU context that MXNet's profiler has a slot for."""
    return cores() + 1


def without_slot(devices):
    """Those of `devices` that would end the process if they were recorded."""
    return [d for d in devices if d.device_type == "cpu" and d.device_id > last_cpu()]


def plot(trace, title=None, ax=None):
    """Draw a lane per device, a bar per operator, and return the axes.

    Colours tell the devices apart, hatches the kinds of work.
    """
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7, 0.7 + 0.55 * len(trace.devices)))[1]
    for lane, device in enumerate(trace.devices):
        for kind in KIND_HATCHES:
            spans = _union([e for e in trace.of(device) if e.kind == kind])
            bars = [(start, end - start) for start, end in spans]
            ax.broken_barh(bars, (lane - 0.4, 0.8), **bar(lane, kind))
    ax.set_yticks(range(len(trace.devices)), trace.devices)
    ax.invert_yaxis()
    ax.set_xlabel("time (ms)")
    ax.set_xlim(0, max((e.end for e in trace.events), default=1))
    ax.spines[["top", "right"]].set_visible(False)
    if title:
        ax.set_title(title, loc="left", fontsize=10)
    return ax


def _union(events):
    """Merge spans that touch: a sorted list of disjoint (start, end)."""
    merged = []
    for e in sorted(events, key=lambda e: e.start):
        if merged and e.start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], e.end))
        else:
            merged.append((e.start, e.end))
    return merged


def _at_least_two(lanes):
    """Length of the time in which two or more lanes of disjoint spans are busy."""
    edges = sorted(
        edge for lane in lanes for s, e in lane for edge in ((s, 1), (e, -1))
    )
    total, depth, last = 0.0, 0, 0.0
    for time, change in edges:
        total += (time - last) if depth >= 2 else 0.0
        depth, last = depth + change, time
    return total
