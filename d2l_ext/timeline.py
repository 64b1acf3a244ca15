"""What each device did, and when: the engine's profiler as a chart per device."""

import json
import os
import tempfile
from collections import namedtuple
from contextlib import contextmanager

import mxnet as mx
from mxnet import npx

#: One operator on one device. Times in milliseconds from the start of the record.
Event = namedtuple("Event", "device name kind start end")

#: The colour of device i, safe for colour-blind readers (Okabe and Ito, 2008).
DEVICE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
#: The hatch of a kind of work: forward plain, backward striped, …
KIND_HATCHES = {"forward": "", "backward": "////", "update": "xx", "copy": ".."}

_UPDATES = {"_npi_multiply_scalar", "_npi_true_divide_scalar", "_npi_subtract"}
#: Names of the profiler's lanes by their number, filled by the first record.
_LANES = {}
_BOOKKEEPING = {"DeleteVariable", "SetupExec", "ResourceParallelRandomSetSeed"}


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


@contextmanager
def record():
    """Profile the operators run inside the `with` block; yields a `Timeline`.

        with timeline.record() as trace:
            train_batch(X, y, device_params, devices, lr)
        timeline.plot(trace)

    Waits for the engine before and after, so that the block's work, all of it
    and nothing else, is recorded. The timeline is filled when the block ends.
    One record at a time: MXNet has one profiler per process.

    MXNet's profiler has a slot for each core and two more. A CPU context whose
    number is higher writes outside its table and ends the process: on two cores,
    record `cpu(0)` to `cpu(3)` only.

    Source: `mxnet.profiler`. Developed in the chapter *Devices*.
    """
    trace = Timeline()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        npx.waitall()
        mx.profiler.set_config(profile_imperative=True, profile_symbolic=True,
                               profile_api=False, filename=path)  # fmt: skip
        mx.profiler.set_state("run")
        try:
            yield trace
        finally:
            npx.waitall()
            mx.profiler.set_state("stop")
            # finished=True would close the profiler for the rest of the process.
            mx.profiler.dump(finished=False)
            with open(path) as f:
                trace.events = parse(_complete(f.read()))


def _complete(text):
    """Read an unfinished dump: the first has a head and no end, later ones neither."""
    text = text.strip()
    if text.startswith("{"):
        return json.loads(text + "]}")["traceEvents"]
    return json.loads("[" + text.lstrip(",") + "]")


def parse(raw, lanes=_LANES):
    """Turn Chrome trace events, a list of dict with times in µs, into `Event`s.

    MXNet writes every operator twice: with a begin (B) and end (E) under its
    device, and as an asynchronous pair that we leave aside, like the engine's
    bookkeeping. Times start at the first event. `lanes` remembers the names of
    the devices, which MXNet writes only once in a process.
    """
    lanes.update(_lane_names(raw))
    opened, events = {}, []
    for e in raw:
        key = (e["pid"], e.get("tid"), e["name"])
        if e["ph"] == "B":
            opened.setdefault(key, []).append(e["ts"])
        elif e["ph"] == "E" and opened.get(key) and e["name"] not in _BOOKKEEPING:
            start = opened[key].pop(0)
            device = lanes.get(e["pid"], f"cpu/{e['pid']}")
            events.append((device, e["name"], start, e["ts"]))
    origin = min((e[2] for e in events), default=0)
    events = [
        Event(device, name, kind_of(name), (start - origin) / 1e3, (end - origin) / 1e3)
        for device, name, start, end in events
    ]
    return sorted(events, key=lambda e: (e.start, e.device))


def _lane_names(raw):
    names = {e["pid"]: e["args"]["name"] for e in raw if e["ph"] == "M"}
    if any(name.startswith("gpu") for name in names.values()):
        return names
    # Without GPUs nothing is pinned: those two slots serve further CPU contexts.
    return {pid: f"cpu/{pid}" for pid in names}


def kind_of(name):
    """The kind of work that an operator does, told by its name.

    `ImperativeBulk` is what autograd makes of a run of backward operators.
    """
    if "Copy" in name:
        return "copy"
    if "backward" in name or name == "ImperativeBulk":
        return "backward"
    return "update" if name in _UPDATES or "update" in name else "forward"


def plot(trace, title=None, ax=None):
    """Draw a lane per device, a bar per operator, and return the axes.

    Colours tell the devices apart, hatches the kinds of work.
    """
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7, 0.7 + 0.55 * len(trace.devices)))[1]
    for lane, device in enumerate(trace.devices):
        colour = DEVICE_COLOURS[lane % len(DEVICE_COLOURS)]
        for kind, hatch in KIND_HATCHES.items():
            spans = _union([e for e in trace.of(device) if e.kind == kind])
            bars = [(start, end - start) for start, end in spans]
            ax.broken_barh(bars, (lane - 0.4, 0.8), facecolor=colour, hatch=hatch,
                           edgecolor="white", linewidth=0.2)  # fmt: skip
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
