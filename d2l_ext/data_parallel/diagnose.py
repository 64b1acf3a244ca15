"""Why is there no speed-up? A verdict on the reader's own training step."""

import linecache
import os
import sys
import textwrap
from collections import namedtuple
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, thread_time

from mxnet import npx
from mxnet.base import _LIB

from ..devices import timeline
from ..runtime import cores as _cores


def diagnose(step, devices, steps=5):
    """Run `step()` and say why two devices may be no faster than one: a `Diagnosis`.

        print(diagnose(lambda: train_batch(X, y, replicas, devices, lr), devices))

    `step`: a function without arguments that takes one training step on `devices`, two
    or more, and also loads the data. Each of its 2·`steps` + 1 calls trains.
    Raises `ValueError` for fewer than two devices or one step, or a CPU context that
    MXNet's profiler has no slot for.

    Developed in the chapter *Why is there no speed-up?*
    """
    if len(devices) < 2 or steps < 1:
        raise ValueError(
            f"{len(devices)} devices, {steps} steps: give at least 2 devices and 1 step"
        )
    timeline.borrowed_slots(devices)  # before the first step, for its `ValueError`
    _milliseconds(step, 1)
    waits, own = [], thread_time()
    seconds = _milliseconds(lambda: waits.extend(_waits(step)), steps) / steps / 1e3
    asking = (thread_time() - own) / steps
    with timeline.record(devices) as trace:
        recorded = _milliseconds(step, steps)
    return judge(trace, devices, steps, seconds, waits, recorded, asking)


def judge(trace, devices, steps, seconds, waits=(), recorded=None, asking=0.0,
          environ=os.environ):
    """Return the `Diagnosis` of a `Timeline` of `steps` steps of `seconds` each.

    `waits`: one tuple per blocking call of these steps (its line, its seconds, whether
    the step continued afterwards). `recorded`: the milliseconds that the timeline
    covers, default the span of the events on `devices`. `asking`: the CPU seconds per
    step of Python's own thread. `environ`: the settings in force.
    """
    names = sorted({f"{d.device_type}/{d.device_id}" for d in devices})
    own = timeline.Timeline()
    own.events = [e for e in trace.events if e.device in names]
    recorded = recorded or own.span() or 1.0
    lanes = [own.busy(name) for name in names]
    overlap = _share_of_overlap(own, lanes)
    idle = recorded - own.busy()
    inside = [wait for wait in waits if wait[2]]
    line, longest, _ = max(inside or waits, key=lambda w: w[1], default=("", 0.0, 0))
    settings = missing_settings(devices, environ)
    if len(names) < len(devices):
        cause = "same device twice"
    elif settings:
        cause = "settings"
    elif idle > 0.3 * recorded:
        long = _pauses_are_long(own, recorded, idle, steps, asking)
        cause = "waiting for data" if long else "Python overhead"
    else:
        waited = sum(wait[1] for wait in inside) / steps
        cause = _cause_when_busy(lanes, overlap, waited / seconds, asking / seconds)
    busy = {name: lane / recorded for name, lane in zip(names, lanes)}
    advice = ADVICE[cause].format(settings or line)
    return Diagnosis(cause, advice, seconds, busy, overlap, idle / recorded, longest,
                     asking)


def _share_of_overlap(own, lanes):
    """Return the time that overlap saves, as a share of the most possible, 0 to 1."""
    saved, possible = sum(lanes) - own.busy(), sum(lanes) - max(lanes)
    return max(0.0, round(saved / possible, 9)) if possible else 0.0


def _pauses_are_long(own, recorded, idle, steps, asking):
    """Return whether one long pause per step makes up most of the idle time."""
    pauses = sorted(_gaps(own, recorded))[-steps:]  # the longest one of each step
    # Python enqueues 20 operators in this time, or all if there are fewer.
    brief = asking * 1e3 * min(1, 20 * steps / max(len(own.events), 1))
    return sum(pauses) > idle / 2 and min(pauses) > brief


def _cause_when_busy(lanes, overlap, waited, asking):
    """Return the cause, given a step's shares in blocking calls and in Python."""
    least, most = min(lanes), max(lanes)
    if least < most / 10:
        return "slowest device"
    if overlap < 0.5 and waited > 0.1:
        return "blocking call"
    if overlap < 0.5:  # one device has finished before Python enqueues on the other
        return "Python overhead" if asking > 0.5 else "shared resource"
    return "slowest device" if least < most / 1.3 else "healthy"


def missing_settings(devices, environ=os.environ):
    """Return missing settings for parallel CPU contexts: `'NAME=value …'` or `''`."""
    missing = []
    if environ.get("MXNET_ENGINE_TYPE") == "NaiveEngine":
        missing.append("MXNET_ENGINE_TYPE=ThreadedEnginePerDevice")
    if all(d.device_type == "cpu" for d in devices):
        threads = max(_cores() // len(devices), 1)
        in_force = environ.get("OMP_NUM_THREADS", str(_cores()))
        if int(in_force.split(",")[0]) > threads:
            missing.append(f"OMP_NUM_THREADS={threads}")
        if int(environ.get("MXNET_CPU_TEMP_COPY", 4)) < 64:
            missing.append("MXNET_CPU_TEMP_COPY=256")
    return " ".join(missing)


#: The causes, roughly in the order in which `diagnose` checks them, and what to do.
ADVICE = {
    "same device twice": "Name different devices: `try_all_devices(k)`. Without GPUs, "
    "`d2l.try_gpu(0)` and `d2l.try_gpu(1)` are both cpu(0).",
    "settings": "Set this before Python starts, then ask again: {}",
    "waiting for data": "Once in every step, no device has work for long. Is it the "
    "data loader, or other code of yours? Prepare the next minibatch in a thread.",
    "Python overhead": "The devices wait for Python to enqueue operators. Use "
    "larger minibatches, hybridize the network, or use fewer and larger operators.",
    "blocking call": "Python waits for one device before it enqueues operators on the "
    "other, longest in `{}`. Keep the array, and read it after the step.",
    "shared resource": "Python enqueues in time, yet the devices take turns. Does one "
    "need a result of the other? Do both draw random numbers, as dropout does? Then "
    "set MXNET_CPU_PARALLEL_RAND_COPY=16 before Python starts.",
    "slowest device": "The others wait for it. Give it fewer examples, by "
    "`work_load_list`, or remove its other work.",
    "healthy": "The devices work side by side. What is left is the work that is not "
    "divided, and what devices share: memory, caches, cores.",
}


@dataclass
class Diagnosis:
    """The cause, the remedy, and the measurements. Print it for a report."""

    cause: str  # a key of `ADVICE`
    advice: str
    seconds: float  # per step, without the profiler
    busy: dict  # device name: share of the time in which it worked
    overlap: float  # time saved side by side, as a share of what the lanes would allow
    idle: float  # share of the time in which no device worked
    longest_wait: float  # seconds in one blocking call of Python
    asking: float = 0.0  # seconds per step in which Python's own thread computes

    def __str__(self):
        rows = {"time per step": f"{self.seconds * 1e3:.1f} ms"}
        rows.update((f"{name} works", f"{b:.0%}") for name, b in self.busy.items())
        rows["side by side"] = f"{self.overlap:.0%} of what is possible"
        rows["no device works"] = f"{self.idle:.0%}"
        rows["longest wait of Python"] = f"{self.longest_wait * 1e3:.1f} ms"
        rows["Python computes"] = f"{self.asking * 1e3:.1f} ms"
        lines = [f"  {name:24}{value}" for name, value in rows.items()]
        advice = textwrap.wrap(self.advice, 78, break_on_hyphens=False)
        return "\n".join([f"cause: {self.cause}", *lines, *advice])


#: A blocking call: the line that made it, when it began and ended, in seconds of
#: `time.perf_counter`.
Wait = namedtuple("Wait", "line start end")

#: The functions of MXNet's library that wait for a value, for an array, or for all.
FUNCTIONS = (
    "MXNDArraySyncCopyToCPU",  # asnumpy, float, bool, print
    "MXNDArraySyncCopyFromCPU",  # x[:] = a NumPy array
    "MXNDArrayWaitToRead",
    "MXNDArrayWaitToWrite",
    "MXNDArrayWaitAll",
)


@contextmanager
def blocking_calls():
    """Record blocking calls inside the `with` block; yields a list of `Wait`.

    Waits for a value, for an array, or for all. Not recorded: operators whose output
    shape depends on values (`x[mask]`, `nonzero`, `unique`), and saving.
    `wait.line` is the source line outside of MXNet, or its file and number. A call
    whose result is ready is recorded as well: look at its duration. Developed in the
    chapter *Why is there no speed-up?*
    """
    library, waits = vars(_LIB), []
    originals = {name: getattr(_LIB, name) for name in FUNCTIONS}
    library.update({name: _noted(call, waits) for name, call in originals.items()})
    try:
        yield waits
    finally:
        library.update(originals)


def _milliseconds(step, steps):
    """Time `steps` steps, from an idle engine to an idle engine."""
    npx.waitall()
    start = perf_counter()
    for _ in range(steps):
        step()
    npx.waitall()
    return (perf_counter() - start) * 1e3


def _waits(step):
    """Run `step()`; return its blocking calls as `judge` takes them."""
    start = perf_counter()
    with blocking_calls() as waits:
        step()
    end = perf_counter()
    # A wait at the very end of a step delays no operator.
    late = end - 0.02 * (end - start)
    return [(wait.line, wait.end - wait.start, wait.end < late) for wait in waits]


def _gaps(trace, recorded):
    """Return the lengths, in milliseconds, of gaps in which all devices were idle."""
    edges = [0.0, *(t for span in timeline.union(trace.events) for t in span), recorded]
    return [stop - start for start, stop in zip(edges[::2], edges[1::2])]


def _noted(function, waits):
    def call(*arguments):
        start = perf_counter()
        try:
            return function(*arguments)
        finally:
            waits.append(Wait(_line(), start, perf_counter()))

    return call


def _line():
    """Return the source line of the innermost frame outside MXNet and this module."""
    frame = sys._getframe(1)
    ours = (__name__, "mxnet", "contextlib")
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(ours):
        frame = frame.f_back
    file, number = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(file, number).strip()
    return source or f"{os.path.basename(file)}, line {number}"
