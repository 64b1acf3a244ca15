"""Says in words what workers and servers do.

Every function has its twin of the same name in `server_traffic.js`. `d`: what `state`
returns. `now`: how many ticks of the clock have passed; the last of them is told.
"""

from .server_traffic_state import (
    MESSAGES,
    computes,
    happened,
    kept,
    nbytes,
    traffic,
    under_way,
    updates,
    waits,
)
from .shapes import number, ratio


def summary(d):
    """The whole run in words and numbers."""
    servers, last = range(d["servers"]), d["end"] - 1
    finished = ", ".join(str(len(ticks) - 1) for ticks in d["begins"])
    made = ", ".join(str(updates(d, server, last)) for server in servers)
    moved = sum(map(sum, d["values"]))
    missed = max(e["stale"] for e in d["exchanges"] if e["stale"] is not None)
    return (
        f"{d['mode']}, workers: {d['workers']}, servers: {d['servers']}, keys: "
        f"{d['keys']}, the last worker computes {d['slow']}× as long as the others. "
        f"After {d['end']} ticks, steps finished by each worker: {finished}; updates "
        f"made by each server: {made}. In a step, a worker pushes {number(moved)} "
        f"bytes, and pulls as many. Most updates that a gradient missed: {missed}."
    )


def moment(d, now):
    """What everybody does in the last tick, waits for, and has sent."""
    t = now - 1
    if not now:
        return f"Tick 0 of {d['end']}: nothing has begun."
    doing = "; ".join(_doing(d, w, t) for w in range(d["workers"]))
    keeping = " ".join(_keeping(d, s, t) for s in range(d["servers"]))
    flying = "; ".join(_flying(d, name, e) for name, e, _ in under_way(d, t))
    missed = "; ".join(_missed(d, w, t) for w in range(d["workers"]))
    return (
        f"Tick {now} of {d['end']}: {doing}. {keeping} On the way: "
        f"{flying or 'nothing'}. Updates missed by the gradients of key 0: {missed}."
    )


def held(d, server):
    """The keys of which the server holds the whole or a part."""
    part = ("", "", "half of ", "a third of ")[d["servers"]]
    names = [
        f"{part if row.count(0) < len(row) - 1 else ''}key {key}"
        for key, row in enumerate(d["values"])
        if row[server]
    ]
    return f"holds {', '.join(names)}" if names else "holds no key"


def megabytes(n):
    return f"{ratio(n, 10**6, 1)} MB"


def _doing(d, worker, t):
    step = computes(d, worker, t)
    if step is not None:
        return f"worker {worker} computes step {step}"
    waiting = waits(d, worker, t)
    what = " and ".join(f"{name} of key {_list(keys)}" for name, keys in waiting)
    return f"worker {worker} waits for {what}"


def _keeping(d, server, t):
    into, out = traffic(d, server, t)
    waiting = "".join(
        f", keeps key {key} of worker {_list(workers)} and waits for worker "
        + _list(w for w in range(d["workers"]) if w not in workers)
        for key, workers in kept(d, server, t)
    )
    return (
        f"Server {server} has received {number(into)} bytes, sent {number(out)}"
        f"{waiting}."
    )


def _flying(d, name, e):
    ends = f"worker {e['worker']}", f"server {e['server']}"
    start, end = ends if MESSAGES[name][1] else reversed(ends)
    moved = number(nbytes(d, name, e))
    return f"{name}, key {e['key']}, {start} → {end}, {moved} bytes"


def _missed(d, worker, t):
    own = [
        e["stale"] for e in d["exchanges"]
        if (e["worker"], e["key"], e["server"]) == (worker, 0, 0)
        and happened(e["handled"], t)
    ]  # fmt: skip
    return f"worker {worker}: {_list(own) or 'none yet'}"


def _list(numbers):
    return ", ".join(map(str, numbers))
