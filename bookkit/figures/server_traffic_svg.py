"""Draws workers and servers as SVG.

Every function has its twin of the same name in `server_traffic.js`. `d`: what `state`
returns. `now`: how many ticks of the clock have passed; the last of them is shown.
"""

from d2l_ext.palette import colour, ink

from .server_traffic_state import (
    MESSAGES,
    computes,
    happened,
    kept,
    spans,
    state,
    traffic,
    under_way,
    updates,
)
from .server_traffic_words import held, megabytes, moment, summary
from .shapes import ground, text, work

__all__ = ["drawing", "height", "moment", "state", "steps", "summary"]

#: Where the lanes start, how wide a tick is, how high a lane.
LEFT, TOP, TICK, LANE = 80, 332, 10, 24
#: Where the messages fly: between these heights.
SERVERS, WORKERS = 92, 236


def steps(d):
    return d["end"]


def height(d):
    return TOP + 24 + LANE * (d["workers"] + d["servers"])


def drawing(d, now):
    """Above who talks to whom, below what everybody does in each tick."""
    t = now - 1
    servers, workers = range(d["servers"]), range(d["workers"])
    x, bottom = LEFT + TICK * now, height(d) - 18
    return (
        "".join(_line(d, w, s) for s in servers for w in workers)
        + "".join(_server(d, s, t) for s in servers)
        + "".join(_worker(d, w, t) for w in workers)
        + "".join(_message(d, *flying) for flying in under_way(d, t))
        + _legend()
        + "".join(_worker_lane(d, w, t) for w in workers)
        + "".join(_server_lane(d, s, t) for s in servers)
        + f'<path d="M{x} {TOP - 2}V{bottom}" stroke="currentColor"/>'
        + text(x, bottom + 13, f"tick {now}")
    )


def place(i, of):
    """The middle of the i-th of so many boxes in a row."""
    return 350 * (2 * i + 1) // of


def _line(d, worker, server):
    start, end = place(worker, d["workers"]), place(server, d["servers"])
    return (
        f'<path d="M{start} {WORKERS}L{end} {SERVERS}" stroke="currentColor" '
        'stroke-width="2" stroke-opacity="0.1"/>'
    )


def _server(d, server, t):
    x, (into, out) = place(server, d["servers"]), traffic(d, server, t)
    waiting = [
        f"key {key}: {len(workers)} of {d['workers']}"
        for key, workers in kept(d, server, t)
    ]
    keeps = f"keeps {', '.join(waiting)}" if waiting else ""
    return (
        ground(x - 105, 4, 210, 84)
        + text(x, 20, f"server {server}", state="now")
        + text(x, 36, held(d, server))
        + text(x, 52, f"in {megabytes(into)}, out {megabytes(out)}")
        + text(x, 68, f"{updates(d, server, t)} updates")
        + text(x, 84, keeps)
    )


def _worker(d, worker, t):
    x, step = place(worker, d["workers"]), computes(d, worker, t)
    doing = f"computes step {step}" if step is not None else "waits" if t >= 0 else ""
    box = (x - 45, WORKERS + 4, 90, 20)
    name = work(d, worker, "forward", box, f"worker {worker}")
    return name + text(x, WORKERS + 38, doing)


def _message(d, name, e, age):
    """Requests fly up, left of the line, answers down, right of it."""
    up = MESSAGES[name][1]
    ends = place(e["worker"], d["workers"]), place(e["server"], d["servers"])
    done, whole = 2 * age + 1, 2 * d["flight"]
    along = done if up else whole - done
    x = ends[0] + (ends[1] - ends[0]) * along // whole + (-12 if up else 12)
    y = WORKERS - (WORKERS - SERVERS) * along // whole
    return token(e["worker"], e["key"], up, MESSAGES[name][2], x, y)


def token(worker, key, square, filled, x, y):
    """A message: square for a request, round for an answer, filled if with values."""
    fill = colour(worker) if filled else "none"
    style = f'fill="{fill}" stroke="{colour(worker)}" stroke-width="2"'
    shape = f'<circle cx="{x}" cy="{y}" r="9" {style}/>'
    if square:
        shape = f'<rect x="{x - 8}" y="{y - 8}" width="16" height="16" {style}/>'
    words = ink(worker) if filled else "currentColor"
    return (
        f'<g class="token">{shape}<text x="{x}" y="{y + 4}" text-anchor="middle" '
        f'font-size="11" fill="{words}">{key}</text></g>'
    )


def _legend():
    flying = (
        (60, True, True, "push, the gradient of key 0"),
        (248, False, False, "answer to a push"), (392, True, False, "pull"),
        (468, False, True, "answer to a pull, the weights"),
    )  # fmt: skip
    return (
        "".join(
            token(0, 0, square, filled, x, 290) + text(x + 15, 294, words, "start")
            for x, square, filled, words in flying
        )
        + _kept(0, 56, 304, "")
        + text(75, 317, "a push is kept", "start")
        + _update(0, 244, 304, 3, "")
        + text(263, 317, "a push updates; its gradient missed 3 others", "start")
        + _pull(0, 531, 304, "")
        + text(547, 317, "a pull is answered", "start")
    )


def _worker_lane(d, worker, t):
    y, bars = TOP + LANE * worker, []
    for step, (start, end) in enumerate(spans(d, worker)):
        box = (LEFT + TICK * start, y, TICK * (end - start) - 1, LANE - 6)
        when = "todo" if t < start else "now" if t < end else "done"
        bars.append(work(d, worker, "forward", box, step, when))
    name = text(40, y + 13, f"worker {worker}")
    return name + ground(LEFT, y, TICK * d["end"], LANE - 6) + "".join(bars)


def _server_lane(d, server, t):
    y = TOP + LANE * (d["workers"] + server)
    marks = [_marks(d, e, y, t) for e in d["exchanges"] if e["server"] == server]
    name = text(40, y + 13, f"server {server}")
    return name + ground(LEFT, y, TICK * d["end"], LANE - 6) + "".join(marks)


def _marks(d, e, y, t):
    """A push and a pull, in the ticks in which the server handles them."""
    marks, at = "", LEFT + TICK * (e["handled"] or 0)
    when = "done" if happened(e["handled"], t) else "todo"
    if e["handled"] is not None and e["answered"] != e["handled"]:
        marks = _kept(e["worker"], at, y, when)
    elif e["handled"] is not None:
        marks = _update(e["worker"], at, y, e["stale"], when)
    if e["given"] is not None:
        when = "done" if happened(e["given"], t) else "todo"
        marks += _pull(e["worker"], LEFT + TICK * e["given"], y, when)
    return marks


def _kept(worker, x, y, when):
    return (
        f'<rect class="{when}" x="{x + 1}" y="{y + 1}" width="{TICK - 3}" '
        f'height="{LANE - 8}" fill="none" stroke="{colour(worker)}" stroke-width="2"/>'
    )


def _update(worker, x, y, missed, when):
    return (
        f'<g class="{when}"><rect x="{x}" y="{y}" width="{TICK - 1}" '
        f'height="{LANE - 6}" fill="{colour(worker)}"/><text x="{x + 4}" y="{y + 12}" '
        f'text-anchor="middle" font-size="9" fill="{ink(worker)}">{missed}</text></g>'
    )


def _pull(worker, x, y, when):
    return (
        f'<circle class="{when}" cx="{x + TICK // 2}" cy="{y + 9}" r="3" '
        f'fill="{colour(worker)}"/>'
    )
