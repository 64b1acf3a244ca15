"""A timeline as a file for chrome://tracing and https://ui.perfetto.dev."""

import json
from contextlib import contextmanager

from ..devices import timeline


def trace_events(trace):
    """The events of a `Timeline` as a list of dict, in Chrome's trace event format.

    A process per device, a complete event (`X`) per operator, times in µs, the kind
    of work as category. Source: "Trace Event Format", Google.
    """
    lanes = {device: i for i, device in enumerate(trace.devices)}
    names = [
        {"ph": "M", "name": "process_name", "pid": i, "tid": 0, "args": {"name": d}}
        for d, i in lanes.items()
    ]
    return names + [
        {"ph": "X", "name": e.name, "cat": e.kind, "pid": lanes[e.device], "tid": 0,
         "ts": round(e.start * 1e3, 3), "dur": round((e.end - e.start) * 1e3, 3)}
        for e in trace.events
    ]  # fmt: skip


def write(trace, path):
    """Write a `Timeline` to the file `path`."""
    with open(path, "w") as file:
        json.dump({"traceEvents": trace_events(trace), "displayTimeUnit": "ms"}, file)


class StepProfiler:
    """Records `count` steps from step `first` on, and writes them to `path`.

    `devices`: the contexts that the steps use. The first steps plan operators and
    memory: they are left out by default.
    """

    def __init__(self, path, devices, first=2, count=3):
        self.path, self.devices = path, devices
        self.first, self.last = first, first + count - 1
        self.number = 0  # of the step that comes
        self.open = self.trace = None

    @contextmanager
    def step(self):
        """Put a step of training into this."""
        if self.number == self.first:
            self.open = timeline.record(self.devices)
            self.trace = self.open.__enter__()
        yield
        if self.number == self.last:
            self.close()
        self.number += 1

    def close(self):
        """Write the file, even if fewer steps were seen."""
        if self.open:
            self.open.__exit__(None, None, None)
            write(self.trace, self.path)
        self.open = None
