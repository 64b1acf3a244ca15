"""What each device did, and when: MXNet's profiler, drawn or written to a file."""

import json
import os
import re
import shutil
import tempfile
from collections import namedtuple
from contextlib import contextmanager

import mxnet as mx
from mxnet import npx

from ..palette import DEVICE_COLOURS, KIND_HATCHES, bar  # noqa: F401
from ..runtime import cores

#: One operator on one device. Times in milliseconds from the first start.
Event = namedtuple("Event", "device name kind start end")


class Timeline:
    """Operators that ran while a `record` was open: `events`, ordered by start."""

    def __init__(self):
        self.events = []

    @property
    def devices(self):
        """The names of the devices that ran an operator: a sorted list."""
        return sorted({e.device for e in self.events})

    def busy(self, device=None):
        """Return the milliseconds in which `device` (default: any device) was busy."""
        spans = [e for e in self.events if device in (None, e.device)]
        return sum(end - start for start, end in union(spans))

    def overlap(self):
        """Return the milliseconds in which two or more devices were busy at once."""
        return _at_least_two([union(self.of(d)) for d in self.devices])

    def span(self):
        """Return the milliseconds from first start to last end; 0.0 without events."""
        if not self.events:
            return 0.0
        return max(e.end for e in self.events) - min(e.start for e in self.events)

    def of(self, device):
        """Return the events of one device."""
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

    Waits for the engine before and after the block, so that it records all of the
    block's work and nothing else. The timeline is filled when the block ends.
    One record at a time: MXNet has one profiler per process.

    `devices`: the contexts that the block uses; required if there are more CPU
    contexts than cores. MXNet's profiler has one slot per core, then others, of which
    CPU contexts with higher numbers borrow two: `cpu pinned` and `cpu shared`, in the
    GPU build `gpu/0` and `gpu/1`. In the CPU build, a context beyond these fails
    a check of MXNet's and ends the process.

    Raises `ValueError` when `devices` holds such a context.
    Source: `mxnet.profiler`. Developed in the chapter *Devices*.
    """
    borrowed = borrowed_slots(devices)
    trace = Timeline()

    def take(path):
        trace.events = parse(raw_events(path), {**_slots, **borrowed})

    profiler = profiled(take, profile_imperative=True, profile_symbolic=True)
    with profiler, marked_backward():
        yield trace


def plot(trace, title=None, ax=None):
    """Draw a lane per device, a bar per operator, hatched by kind; return the axes.

    The first axes of a figure with several timelines carry the legend of the hatches.
    Axes that share their time axis show the longest of their timelines whole.
    """
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7, 0.7 + 0.55 * len(trace.devices)))[1]
    for lane, device in enumerate(trace.devices):
        for kind in KIND_HATCHES:
            spans = union([e for e in trace.of(device) if e.kind == kind])
            bars = [(start, end - start) for start, end in spans]
            ax.broken_barh(bars, (lane - 0.4, 0.8), **bar(lane, kind))
    ax.set_yticks(range(len(trace.devices)), trace.devices)
    ax.invert_yaxis()
    ax.set_xlabel("time (ms)")
    others = [a.get_xlim()[1] for a in ax.get_shared_x_axes().get_siblings(ax)
              if a is not ax and a.has_data()]
    ax.set_xlim(0, max([*others, *(e.end for e in trace.events)], default=1))
    ax.spines[["top", "right"]].set_visible(False)
    if title:
        ax.set_title(title, loc="left", fontsize=10)
    first = ax.figure.axes[0]
    if ax is first or hasattr(first, "kinds_of_work"):
        drawn = getattr(first, "kinds_of_work", set()) | {e.kind for e in trace.events}
        first.kinds_of_work = drawn
        if len(drawn) > 1:
            legend(first, [kind for kind in KIND_HATCHES if kind in drawn])
    return ax


def legend(ax, kinds):
    """Draw the legend of the hatches above the right end of `ax`."""
    from matplotlib.patches import Patch

    patches = [Patch(**{**bar(0, k), "facecolor": "0.45"}, label=k) for k in kinds]
    ax.legend(handles=patches, loc="lower right", bbox_to_anchor=(1, 0.97), ncol=4,
              fontsize=8, columnspacing=1, handlelength=1.6, borderaxespad=0)


def write(trace, path):
    """Write a `Timeline` to `path`, for chrome://tracing and https://ui.perfetto.dev.

    The file is in Google's "Trace Event Format".
    """
    lanes = {device: i for i, device in enumerate(trace.devices)}
    events = [
        {"ph": "M", "name": "process_name", "pid": i, "tid": 0, "args": {"name": d}}
        for d, i in lanes.items()
    ] + [
        {"ph": "X", "name": e.name, "cat": e.kind, "pid": lanes[e.device], "tid": 0,
         "ts": round(e.start * 1e3, 3), "dur": round((e.end - e.start) * 1e3, 3)}
        for e in trace.events
    ]
    with open(path, "w") as file:
        json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)


# ---- MXNet's profiler ----

#: MXNet gives every bulk of operators this name, whether forward or backward.
_BULK = "ImperativeBulk"
#: Operators that `record` makes a device run just before autograd's backward pass: the
#: first creates the ones with which backward begins, the second reads a head gradient
#: that was passed in instead.
_MARKS = ("ones_like", "shape_array")
#: Parts of the names of a layer's operators. All others are arithmetic, which sums of
#: gradients and updates use as well.
_LAYER = re.compile(
    "conv|dot|connected|embed|relu|activation|norm|pool|softmax", re.IGNORECASE
)
_BOOKKEEPING = {
    "DeleteVariable", "SetupExec", "ResourceParallelRandomSetSeed", "WaitForVar",
}
#: Slot number -> its name in the profiler. MXNet writes them once per process.
_slots = {}


@contextmanager
def profiled(take, **what):
    """Profile the work of the `with` block, and nothing else, with the options `what`.

    `take`: called at the end, even after an error, with the path of the written file.
    """
    folder = tempfile.mkdtemp(prefix="d2l_ext-profile-")
    path = os.path.join(folder, "profile.json")
    try:
        npx.waitall()
        mx.profiler.set_config(profile_api=False, filename=path, **what)
        mx.profiler.set_state("run")
        try:
            yield
        finally:
            npx.waitall()
            mx.profiler.set_state("stop")
            # finished=True would close the profiler for the rest of the process.
            mx.profiler.dump(finished=False)
            take(path)
    finally:
        # A thread of the profiler writes once a second, even after everything was read,
        # so perhaps just as the folder is removed.
        for _ in range(100):
            shutil.rmtree(folder, ignore_errors=True)
            if not os.path.lexists(folder):
                break


class TooFewCores(ValueError):
    """More CPU contexts than MXNet's profiler has room for on this machine."""


def borrowed_slots(devices):
    """Return names for the profiler's slots that CPU contexts beyond the cores borrow:
    a dict.

    Raises `TooFewCores` for a context whose recording would crash the process.
    """
    numbers = [d.device_id for d in devices if d.device_type == "cpu"]
    if max(numbers, default=0) > last_cpu():
        raise TooFewCores(
            f"cpu({max(numbers)}) cannot be recorded: MXNet's profiler has room for "
            f"cpu(0) to cpu({last_cpu()}) on {cores()} cores. Use fewer CPU contexts."
        )
    return {i: f"cpu/{i}" for i in numbers if i >= cores()}


def last_cpu():
    """Return the highest number of a CPU context with a slot in MXNet's profiler."""
    return cores() + 1


def raw_events(path):
    """Return the events in `path`, from `profiler.dump`; store the slots' names."""
    with open(path) as f:
        text = f.read().strip()
    # Dumps are unfinished: the first has a head but no end, later ones have neither.
    if text.startswith("{"):
        raw = json.loads(text + "]}")["traceEvents"]
    else:
        raw = json.loads("[" + text.lstrip(",") + "]")
    _slots.update({e["pid"]: e["args"]["name"] for e in raw if e["ph"] == "M"})
    return raw


def parse(raw, names):
    """Turn Chrome trace events, a list of dicts with times in µs, into `Event`s.

    `names`: device by process number. MXNet writes every operator twice: with begin
    and end under its device, and as an asynchronous pair, which is ignored here.
    """
    opened, events = {}, []
    for e in raw:
        key = (e["pid"], e.get("tid"), e["name"])
        if e["ph"] == "B":
            opened.setdefault(key, []).append(e["ts"])
        elif e["ph"] == "E" and opened.get(key) and e["name"] not in _BOOKKEEPING:
            start = opened[key].pop(0)
            device = names[e["pid"]].strip("/ ")
            events.append((start, device, e["name"], e["ts"]))
    events.sort(key=lambda e: e[:2])
    belongs = kinds([(device, name) for _, device, name, _ in events])
    origin = min(events)[0] if events else 0
    return [
        Event(device, name, kind, (start - origin) / 1e3, (end - origin) / 1e3)
        for (start, device, name, end), kind in zip(events, belongs)
        if name not in _MARKS
    ]


def kinds(ran):
    """Return the kind of work of each operator: a list of keys of `KIND_HATCHES`.

        kinds([("cpu/0", "ImperativeBulk"), ("cpu/0", "ones_like"),
               ("cpu/0", "ImperativeBulk")])
        # forward, forward (the mark, which is left out later), backward

    `ran`: pairs (device, operator) in the order in which they began, with the marks of
    `marked_backward`. On a device, a bulk is forward until a mark and backward after
    it; it is forward again if an optimizer has updated its weights since, or those of
    any device if its own are never updated there, and another mark follows. A device
    that autograd reaches by a copy has no mark of its own; there the other devices'
    marks count. Arithmetic after a mark or a backward operator is an update (a sum of
    gradients, or a step of the weights), until the next operator of a layer.
    """
    last_mark = {device: i for i, (device, name) in enumerate(ran) if name in _MARKS}
    state = _Kinds(last_mark, {device for device, name in ran if "update" in name})
    return [state.kind(i, device, name) for i, (device, name) in enumerate(ran)]


class _Kinds:
    """The devices in their `backward` pass, and those `after` a mark or its work."""

    def __init__(self, last_mark, updating):
        self.last_mark, self.updating = last_mark, updating
        self.backward, self.after = set(), set()

    def kind(self, i, device, name):
        if name in _MARKS:
            self.backward.add(device)
            self.after.add(device)
            return "forward"
        if "Copy" in name:
            return "copy"
        if "update" in name:
            self.backward = {d for d in self.backward if i > self.last_mark[d]
                             or (d != device and d in self.updating)}
            return "update"
        if "backward" in name or name == _BULK and self._is_backward(device):
            self.after.add(device)
            return "backward"
        if name == _BULK or _LAYER.search(name) or device not in self.after:
            self.after.discard(device)
            return "forward"
        return "update"

    def _is_backward(self, device):
        unmarked = device not in self.last_mark
        return device in self.backward or bool(self.backward) and unmarked


@contextmanager
def marked_backward():
    """In the `with` block, mark where autograd goes backward, on each device."""
    of_module, of_grad = mx.autograd.backward, mx.autograd.grad
    of_array = mx.nd.NDArray.backward

    def backward(heads, head_grads=None, *args, **kwargs):
        return of_module(*_marked(heads, head_grads), *args, **kwargs)

    def grad(heads, variables, head_grads=None, *args, **kwargs):
        heads, head_grads = _marked(heads, head_grads)
        return of_grad(heads, variables, head_grads, *args, **kwargs)

    def array_backward(self, out_grad=None, *args, **kwargs):
        return of_array(self, _mark(self, out_grad), *args, **kwargs)

    mx.autograd.backward, mx.autograd.grad = backward, grad
    mx.nd.NDArray.backward = array_backward
    try:
        yield
    finally:
        mx.autograd.backward, mx.autograd.grad = of_module, of_grad
        mx.nd.NDArray.backward = of_array


def _marked(heads, head_grads):
    """Return a backward pass's heads and their gradients, lists; run their marks."""
    if isinstance(heads, mx.nd.NDArray):
        heads = [heads]
    if isinstance(head_grads, mx.nd.NDArray):
        head_grads = [head_grads]
    if head_grads is None:
        head_grads = [None] * len(heads)
    if len(head_grads) != len(heads):
        return heads, head_grads  # autograd refuses them
    return heads, [*map(_mark, heads, head_grads)]


def _mark(head, gradient):
    with mx.autograd.pause():
        if gradient is not None:
            mx.nd.shape_array(gradient.as_nd_ndarray())
            return gradient
        ones = mx.nd.ones_like(head.as_nd_ndarray())
    return ones.as_np_ndarray() if isinstance(head, mx.np.ndarray) else ones


# ---- Spans of time ----


def union(events):
    """Merge overlapping spans: a sorted list of disjoint (start, end)."""
    merged = []
    for e in sorted(events, key=lambda e: e.start):
        if merged and e.start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], e.end))
        else:
            merged.append((e.start, e.end))
    return merged


def _at_least_two(lanes):
    """Return the time in which two or more lanes of disjoint spans are busy."""
    total, depth, last = 0.0, 0, 0.0
    edges = [edge for lane in lanes for s, e in lane for edge in ((s, 1), (e, -1))]
    for time, change in sorted(edges):
        total += (time - last) if depth >= 2 else 0.0
        depth, last = depth + change, time
    return total
