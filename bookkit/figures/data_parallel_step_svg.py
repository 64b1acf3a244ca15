"""Draws a step of data parallelism as SVG and in words.

Every function has its twin of the same name in `data_parallel_step.js`. `d`: what
`state` returns. `now`: how many of `ACTS` have passed. Devices stand side by side, and
what an act makes stands below what the acts before it have made.
"""

from .shapes import arrow, ground, number, swatch, text, work

#: What happens, in order: copy the parameters (before the first step only), split the
#: minibatch, forward, backward, the allreduce's two halves, update.
ACTS = ("copy", "split", "forward", "backward", "gather", "broadcast", "update")
#: Rows of boxes: what stands there, from which act on, as which kind of work.
ROWS = (
    ("parameters", 1, "copy"), ("shard", 2, "copy"), ("losses", 3, "forward"),
    ("gradient", 4, "backward"), ("sum", 6, "copy"), ("updated", 7, "update"),
)  # fmt: skip


def state(data, choice):
    """The step that is chosen. `k`: devices. `n`: examples of the minibatch."""
    k, n = choice["devices"], choice["batch"]
    return {"k": k, "n": n, "params": data["params"], "example": data["example"],
            "shards": data["shards"][f"{k},{n}"], "sent": data["sent"][str(k)],
            "received": data["received"][str(k)]}  # fmt: skip


def steps(d):
    return len(ACTS)


def height(d):
    return 358 + 16 * (d["k"] - 1)


def left(i):
    """Where device `i`'s column begins."""
    return 112 + 148 * i


def top(d, r):
    """Where row `r` begins: the lanes of the allreduce are between rows 3 and 4."""
    return 104 + 34 * r + (20 + 16 * (d["k"] - 1) if r > 3 else 0)


def crossed(d, i, now):
    """Bytes that have come to device `i`, and that have left it, after `now` acts."""
    came = (d["params"] if now > 0 else 0) + (_shard(d, i) if now > 1 else 0)
    received, sent = (4, 5) if i == 0 else (5, 4)
    came += d["received"][i] if now > received else 0
    return came, d["sent"][i] if now > sent else 0


def _shard(d, i):
    return d["shards"][i] * d["example"]


def drawing(d, now):
    """The inside of the SVG after `now` acts."""
    titles = "".join(
        text(4, top(d, r) + 18, title, "start") for r, (title, _, _) in enumerate(ROWS)
    )
    devices = "".join(_device(d, i, now) for i in range(d["k"]))
    lanes = "".join(_lane(d, i, now) for i in range(1, d["k"]))
    words = text(4, top(d, 3) + 44, "allreduce", "start") if d["k"] > 1 else ""
    return _host(d) + titles + devices + words + lanes + _totals(d, now)


def _host(d):
    """The host's memory, where the parameters and the minibatch come from."""
    held = f"{number(d['params'])} B of parameters, a minibatch of {d['n']} images"
    return (
        text(4, 24, "host", "start")
        + ground(112, 6, 148 * d["k"] - 12, 28)
        + text(106 + 74 * d["k"], 24, held if d["k"] > 1 else "parameters, images")
    )


def _device(d, i, now):
    """A device's column: its name, what comes from the host, and its boxes."""
    x, middle = left(i), left(i) + 68
    coming = ""
    if now in (1, 2):
        nbytes = d["params"] if now == 1 else _shard(d, i)
        coming = arrow(d, (middle - 30, 38), (middle - 30, 70), "now") + text(
            middle - 22, 58, f"{number(nbytes)} B", "start", 10
        )
    boxes = "".join(_box(d, i, r, now) for r in range(len(ROWS)))
    name = swatch(i, (x, 82, 12, 12)) + text(x + 18, 92, f"device {i}", "start")
    return coming + name + boxes


def _box(d, i, r, now):
    """What row `r` of device `i` holds; a faint ground as long as it is not there."""
    box = (left(i), top(d, r), 136, 26)
    _, act, kind = ROWS[r]
    if r == 4 and d["k"] == 1:
        act = 4  # nothing to wait for: the sum is the device's own gradient
    if now < act:
        return ground(*box)
    return work(d, i, kind, box, _label(d, i, r), "now" if now == act else "done")


def _label(d, i, r):
    images = d["shards"][i]
    return (
        f"{number(d['params'])} B", f"{images} images", f"of {images} images",
        f"of {images} images", f"of {d['n']} images", f"{number(d['params'])} B",
    )[r]  # fmt: skip


def _lane(d, i, now):
    """The messages between device `i` and device 0, each in a lane of its own."""
    y, here, there = top(d, 3) + 40 + 16 * (i - 1), left(i) + 10, left(0) + 126
    if now < 5:
        return ""
    ends = ((here, y), (there, y)) if now == 5 else ((there, y), (here, y))
    nbytes, state = f"{number(d['params'])} B", "done" if now == 7 else "now"
    return arrow(d, *ends, state) + text(here + 4, y + 4, nbytes, "start", 9)


def _totals(d, now):
    y = top(d, 5) + 44
    titles = text(4, y, "bytes in", "start") + text(4, y + 16, "bytes out", "start")
    moved = [crossed(d, i, now) for i in range(d["k"])]
    return titles + "".join(
        text(left(i) + 68, y, number(came))
        + text(left(i) + 68, y + 16, number(went))
        for i, (came, went) in enumerate(moved)
    )


def summary(d):
    """The step in words and numbers."""
    k, params = d["k"], number(d["params"])
    if k == 1:
        return (
            f"One device: it holds {params} bytes of parameters, as many of gradients, "
            f"and the whole minibatch of {d['n']} images. There is nothing to sum."
        )
    return (
        f"k = {k} devices, a minibatch of n = {d['n']} images: shards of "
        f"{', '.join(str(n) for n in d['shards'])}. Every device holds all {params} "
        f"bytes of the parameters, and as many of gradients. The allreduce sends "
        f"{number(sum(d['sent']))} bytes in all, {number(d['sent'][0])} of them from "
        f"device 0, however many images there are."
    )


def moment(d, now):
    """What happens in act `now`."""
    return f"Step {now} of {steps(d)}, {_happens(d, now)}"


def _happens(d, now):
    k, params, shards = d["k"], number(d["params"]), [str(n) for n in d["shards"]]
    alone = "copies nothing: one gradient is the sum."
    return (
        "before: the parameters and the minibatch are in the host's memory.",
        f"copy: each device gets the parameters, {params} bytes, before step 1 only.",
        f"split: the devices get {', '.join(shards)} of {d['n']} images.",
        "forward: each device computes the losses of its own images.",
        "backward: each device computes the gradient of its own images.",
        f"allreduce, first half: {_gathers(k, params) if k > 1 else alone}",
        f"allreduce, second half: {_spreads(k, params) if k > 1 else alone}",
        "update: all subtract the same gradient, so all hold the same parameters.",
    )[now]


def _gathers(k, params):
    who = "device 1 sends" if k == 2 else f"devices 1 to {k - 1} send"
    return f"{who} {params} bytes each to device 0, one after the other, and it adds."


def _spreads(k, params):
    to = "device 1" if k == 2 else f"devices 1 to {k - 1}"
    return f"device 0 sends the sum to {to}, {params} bytes each."
