"""Runs MXNet's profiler, and reads what it wrote: operators, each on its device."""

import json
import os
from collections import namedtuple
from contextlib import contextmanager

import mxnet as mx
from mxnet import npx

from ..temporary import Folder

#: One operator on one device. Times in milliseconds from the start of the record.
Event = namedtuple("Event", "device name kind start end")

_UPDATES = {"_npi_multiply_scalar", "_npi_true_divide_scalar", "_npi_subtract"}
_BOOKKEEPING = {
    "DeleteVariable", "SetupExec", "ResourceParallelRandomSetSeed", "WaitForVar",
}  # fmt: skip
#: Names of the profiler's slots by number. MXNet writes them once in a process.
_slots = {}


@contextmanager
def profiled(take, **what):
    """Profile the work of the `with` block, all of it and nothing else.

    `take`: called at the end, also after an error, with the path of what was written.
    `what`: options of `mxnet.profiler.set_config`, such as `profile_memory=True`.
    """
    # A thread of the profiler's writes once a second, also when all has been read, and
    # so perhaps into a folder that is about to be removed: `Folder` does not mind.
    with Folder("d2l_ext-profile-") as folder:
        path = os.path.join(folder, "profile.json")
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


def read(path, borrowed=None):
    """Return the `Event`s in the file `path`, which `mxnet.profiler.dump` wrote.

    `borrowed`: names for slots that other devices used, {number: name}.
    """
    raw = raw_events(path)
    return parse(raw, {**_slots, **(borrowed or {})})


def raw_events(path):
    """Return what `mxnet.profiler.dump` wrote to `path`: Chrome trace events, dicts.

    The slots' names are remembered: they are only in the first dump of a process.
    """
    with open(path) as f:
        raw = _complete(f.read().strip())
    _slots.update({e["pid"]: e["args"]["name"] for e in raw if e["ph"] == "M"})
    return raw


def _complete(text):
    """Read an unfinished dump: the first has a head and no end, later ones neither."""
    if text.startswith("{"):
        return json.loads(text + "]}")["traceEvents"]
    return json.loads("[" + text.lstrip(",") + "]")


def parse(raw, names):
    """Turn Chrome trace events, a list of dict with times in µs, into `Event`s.

    `names`: device by process number. MXNet writes every operator twice: with a
    begin (B) and end (E) under its device, and as an asynchronous pair that we
    leave aside, like the engine's bookkeeping. Times start at the first event.
    """
    opened, events = {}, []
    for e in raw:
        key = (e["pid"], e.get("tid"), e["name"])
        if e["ph"] == "B":
            opened.setdefault(key, []).append(e["ts"])
        elif e["ph"] == "E" and opened.get(key) and e["name"] not in _BOOKKEEPING:
            start = opened[key].pop(0)
            device = names[e["pid"]].strip("/ ")
            events.append((device, e["name"], start, e["ts"]))
    origin = min((e[2] for e in events), default=0)
    events = [
        Event(device, name, kind_of(name), (start - origin) / 1e3, (end - origin) / 1e3)
        for device, name, start, end in events
    ]
    return sorted(events, key=lambda e: (e.start, e.device))


def kind_of(name):
    """The kind of work that an operator does, told by its name.

    `ImperativeBulk` is what autograd makes of a run of backward operators.
    """
    if "Copy" in name:
        return "copy"
    if "backward" in name or name == "ImperativeBulk":
        return "backward"
    return "update" if name in _UPDATES or "update" in name else "forward"
