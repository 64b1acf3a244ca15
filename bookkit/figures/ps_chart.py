"""The start of a job and one step of it, drawn from the logs of its processes."""

from d2l_ext.kvstore.ps_log import SCHEDULER, rank, role
from d2l_ext.palette import SERIES_COLOURS

CONTROL, (PUSH, PULL) = "#555555", SERIES_COLOURS[::2][:2]


def phases(logs):
    """Return the messages of a job, grouped by their purpose: a dict from name to list.

    `logs`: the `ps_log.messages` of every process. Of the steps, only the last is
    included. A phase begins when the one before ends, for the node that waits for it;
    within a phase messages are ordered by their ids, not by time, which changes from
    run to run.

    Developed in the chapter *Roles, keys and shards*.
    """
    sent = [m for log in logs for m in log if m.sent and m.sender != m.receiver]

    def those(kind, request, to_scheduler=None):
        found = [m for m in sent if m.kind == kind and m.request == request]
        if to_scheduler is not None:
            found = [m for m in found if (m.receiver == SCHEDULER) == to_scheduler]
        return found

    return {
        "register": _sorted(those("add_node", False, True)),
        "introduce": _sorted(those("add_node", False, False)),
        "wait for all": _one_each(those("barrier", True, True), min),
        "go": _one_each(those("barrier", False, False), min),
        "push": _one_each(those("push", True), max),
        "pushed": _one_each(those("push", False), max),
        "pull": _one_each(those("pull", True), max),
        "pulled": _one_each(those("pull", False), max),
    }


def _sorted(messages):
    return sorted(messages, key=lambda m: (m.sender, m.receiver))


def _one_each(messages, choose):
    """Return the first (`min`) or last (`max`) message between each two nodes."""
    by_ends = {}
    for m in messages:
        by_ends.setdefault((m.sender, m.receiver), []).append(m)
    one = [choose(group, key=lambda m: m.timestamp) for group in by_ends.values()]
    return _sorted(one)


def name(node_id):
    """Return `'scheduler'`, `'server 0'`, `'worker 1'`: a node's role and rank."""
    who = role(node_id)
    return who if node_id == SCHEDULER else f"{who} {rank(node_id)}"


def plot(phases, ax=None):
    """Draw a line per node and an arrow per message, time running downwards.

    `phases`: from the function of that name. `ax`: default new. Returns the axes. An
    arrow of a message with values has their bytes on it; answers are dashed, except the
    scheduler's introductions.
    """
    import matplotlib.pyplot as plt

    drawn = [m for group in phases.values() for m in group]
    ends = {m.sender for m in drawn} | {m.receiver for m in drawn}
    order = sorted(ends, key=lambda i: (i != SCHEDULER, role(i), i))
    x = {node: place for place, node in enumerate(order)}
    rows = len(drawn) + len(phases)
    ax = ax or plt.subplots(figsize=(7, 0.6 + 0.19 * rows))[1]
    y = 0
    for label, group in phases.items():
        ax.text(-0.22, y + len(group) / 2, label, ha="right", va="center", fontsize=10)
        for m in group:
            _arrow(ax, x[m.sender], x[m.receiver], y + 0.5, m)
            y += 1
        y += 1
        ax.axhline(y - 0.5, color="#dddddd", linewidth=0.8)
    for node, place in x.items():
        ax.plot([place, place], [-0.5, y - 1], color="#999999", linewidth=1, zorder=0)
        ax.text(place, -1, f"{name(node)}\nid {node}", ha="center", fontsize=9)
    ax.set(xlim=(-1, len(x) - 0.6), ylim=(y - 1, -1))
    ax.axis("off")
    return ax


def _arrow(ax, start, stop, y, message):
    colour = {"push": PUSH, "pull": PULL}.get(message.kind, CONTROL)
    style = {"arrowstyle": "->", "color": colour, "shrinkA": 0, "shrinkB": 0}
    if not message.request:
        style["linestyle"] = "--" if message.kind != "add_node" else "-"
    ax.annotate("", (stop, y), (start, y), arrowprops=style)
    if message.values:
        place, text = max(start, stop) - 0.28, f"{message.values} bytes"
        white = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        ax.text(place, y, text, color=colour, ha="center", va="center", fontsize=8,
                bbox=white)
