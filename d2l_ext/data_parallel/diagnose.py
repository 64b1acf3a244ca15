"""Why is there no speed-up? A verdict on the reader's own training step."""

import os
from time import perf_counter

from mxnet import npx

from ..devices import timeline
from ..runtime import cores as _cores
from . import blocking
from .verdict import ADVICE, Verdict


def diagnose(step, devices, steps=5):
    """Run `step()` and say why two devices may be no faster than one: a `Verdict`.

        print(diagnose(lambda: train_batch(X, y, replicas, devices, lr), devices))

    `step`: a function without arguments that performs one training step on
    `devices`, two contexts or more; what loads the data belongs inside. It is called
    2·`steps` + 1 times, so it trains: once to warm up, then timed, then profiled.

    The settings are read from the environment as it is now: a variable that was
    changed after MXNet was loaded deceives it. Raises `ValueError` for fewer than two
    devices or one step, or a CPU context that MXNet's profiler has no slot for.

    Developed in the chapter *Why is there no speed-up?*
    """
    if len(devices) < 2 or steps < 1:
        raise ValueError(
            f"{len(devices)} devices, {steps} steps: give at least 2 and 1"
        )
    beyond = timeline.without_slot(devices)
    if beyond:
        last = timeline.last_cpu()
        raise ValueError(f"{beyond[0]}: the profiler here knows cpu(0) to cpu({last})")
    _milliseconds(step, 1)
    waits = []
    seconds = _milliseconds(lambda: waits.extend(_waits(step)), steps) / steps / 1e3
    with timeline.record(devices) as trace:
        recorded = _milliseconds(step, steps)
    return judge(trace, devices, steps, seconds, waits, recorded)


def judge(trace, devices, steps, seconds, waits=(), recorded=None, environ=os.environ):
    """The `Verdict` on a `Timeline` of `steps` steps of `seconds` each.

    `waits`: for each blocking call of these steps (its line, its seconds, whether the
    step went on afterwards). `recorded`: the milliseconds that the timeline covers,
    default `trace.span()`. `environ`: the settings in force.
    """
    names = sorted({f"{d.device_type}/{d.device_id}" for d in devices})
    own = timeline.Timeline()
    own.events = [e for e in trace.events if e.device in names]
    recorded = recorded or own.span() or 1.0
    lanes = [own.busy(name) for name in names]
    possible = min(sum(lanes) / 2, sum(lanes) - max(lanes))
    overlap = own.overlap() / possible if possible else 0.0
    idle = recorded - own.busy()
    inside = [wait for wait in waits if wait[2]]
    line, longest, _ = max(inside or waits, key=lambda w: w[1], default=("", 0.0, 0))
    settings = missing_settings(devices, environ)

    if len(names) < len(devices):
        cause = "same device twice"
    elif settings:
        cause = "settings"
    elif idle > 0.3 * recorded:
        pause = sum(sorted(_gaps(own, recorded))[-steps:])  # the longest of each step
        long = pause > idle / 2 and pause > 5 * steps  # Python alone makes no 5 ms
        cause = "waiting for data" if long else "Python overhead"
    elif min(lanes) < max(lanes) / 10:
        cause = "slowest device"
    elif overlap < 0.5:
        waited = sum(wait[1] for wait in inside) > 0.1 * steps * seconds
        cause = "blocking call" if waited else "shared resource"
    else:
        cause = "slowest device" if min(lanes) < max(lanes) / 1.3 else "healthy"
    busy = {name: lane / recorded for name, lane in zip(names, lanes)}
    advice = ADVICE[cause].format(settings or line)
    return Verdict(cause, advice, seconds, busy, overlap, idle / recorded, longest)


def missing_settings(devices, environ=os.environ):
    """What to set for CPU contexts to work side by side: `'NAME=value …'` or `''`."""
    missing = []
    if environ.get("MXNET_ENGINE_TYPE") == "NaiveEngine":
        missing.append("MXNET_ENGINE_TYPE=ThreadedEnginePerDevice")
    if all(d.device_type == "cpu" for d in devices):
        threads = max(_cores() // len(devices), 1)
        if int(environ.get("OMP_NUM_THREADS", _cores())) > threads:
            missing.append(f"OMP_NUM_THREADS={threads}")
        if int(environ.get("MXNET_CPU_TEMP_COPY", 4)) < 64:
            missing.append("MXNET_CPU_TEMP_COPY=256")
    return " ".join(missing)


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
    with blocking.note() as waits:
        step()
    end = perf_counter()
    # What waits at the very end of a step keeps no device from being asked.
    late = end - 0.02 * (end - start)
    return [(wait.line, wait.end - wait.start, wait.end < late) for wait in waits]


def _gaps(trace, recorded):
    """Milliseconds of each stretch in which no device worked, as a list."""
    gaps, last = [], 0.0
    for event in trace.events:  # ordered by start
        gaps.append(max(event.start - last, 0.0))
        last = max(last, event.end)
    return gaps + [recorded - last]
