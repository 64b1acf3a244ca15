"""Draws a ring allreduce as SVG and in words.

Every function has its twin of the same name in `ring_allreduce.js`. `d`: what `state`
returns. `now`: how many rounds have passed. Chunks stand side by side, devices one
below the other, so that a message goes one row down, and from the last to the first.
"""

from .shapes import arrow, ground, number, ratio, swatch, text


def state(data, choice):
    """The allreduce that is chosen. `k`: devices. `width`: of a chunk's column."""
    k = choice["devices"]
    key = f"{k},{choice['size']}"
    return {"k": k, "ring": data["rings"][str(k)], "chunks": data["chunks"][key],
            "sent": data["sent"][key], "naive": data["naive"][key],
            "width": min(100, 480 // k)}  # fmt: skip


def steps(d):
    return len(d["ring"])


def height(d):
    return 54 + 44 * d["k"]


def held(d, i, c, now):
    """The devices whose numbers are in chunk `c` on device `i`, as a list.

    While they add, a partial sum travels, and each device keeps its own chunks.
    """
    k, ring, own = d["k"], d["ring"], [i]
    if now < k:
        partial = now > 0 and ring[now - 1][i] == c
        return [(i - back) % k for back in range(now, -1, -1)] if partial else own
    complete = [arriving[i] for arriving in ring[k - 2 : now]]
    return list(range(k)) if c in complete else own


def sent(d, i, now):
    """Bytes that device `i` has sent after `now` rounds."""
    receiver = (i + 1) % d["k"]
    return sum(d["chunks"][arriving[receiver]] for arriving in d["ring"][:now])


def drawing(d, now):
    """The inside of the SVG after `now` rounds."""
    right = 80 + d["k"] * d["width"]
    heads = "".join(
        text(_middle(d, c), 14, f"chunk {c}")
        + text(_middle(d, c), 28, f"{number(nbytes)} B", size=9)
        for c, nbytes in enumerate(d["chunks"])
    )
    rows = "".join(_row(d, i, now) for i in range(d["k"]))
    return heads + text(right + 12, 14, "bytes sent", "start") + rows


def _middle(d, c):
    return 80 + c * d["width"] + d["width"] // 2


def _row(d, i, now):
    y, right = 44 + 44 * i, 80 + d["k"] * d["width"]
    cells = "".join(_cell(d, i, c, now) for c in range(d["k"]))
    return (
        swatch(i, (4, y + 5, 12, 12))
        + text(22, y + 15, f"device {i}", "start")
        + cells
        + text(right + 12, y + 15, number(sent(d, i, now)), "start")
        + text(right + 12, y + 27, f"of {number(d['sent'][i])}", "start", 9)
    )


def _cell(d, i, c, now):
    """A chunk on a device: a stripe for each device in it, how many, what arrived."""
    x, y = 80 + c * d["width"], 44 + 44 * i
    members, stripe = held(d, i, c, now), (d["width"] - 8) // d["k"]
    stripes = "".join(
        swatch(j, (x + 2 + j * stripe, y + 2, stripe, 14))
        for j in sorted(members)
    )
    arrived = now > 0 and d["ring"][now - 1][i] == c
    here, whole = "now" if arrived else "", len(members) == d["k"]
    middle = x + 2 + d["k"] * stripe // 2
    message = arrow(d, (middle, y - 10), (middle, y - 1), "now") if arrived else ""
    return (
        f'<g class="chunk {here}">{ground(x, y, d["width"] - 4, 32)}{stripes}'
        + text(middle, y + 28, "sum" if whole else f"{len(members)}/{d['k']}", size=10)
        + f"</g>{message}"
    )


def summary(d):
    """The allreduce in words and numbers."""
    k, nbytes = d["k"], sum(d["chunks"])
    return (
        f"Ring, k = {k} devices, an array of N = {number(nbytes)} bytes in {k} chunks: "
        f"{steps(d)} rounds. 2(k − 1)/k · N = {2 * (k - 1)}/{k} · N = "
        f"{_formula(2 * (k - 1) * nbytes, k)} bytes are sent by "
        f"{_senders(d)}. In the naive allreduce, device 0 would send (k − 1) · N = "
        f"{number(d['naive'][0])}."
    )


def _formula(part, k):
    """Bytes by the formula, with two decimals where the chunks are not whole."""
    return ratio(part, k, 2) if part % k else number(part // k)


def _senders(d):
    """Whether all devices send what the formula says."""
    if len(set(d["sent"])) == 1:
        return "every device"
    each = ", ".join(number(nbytes) for nbytes in d["sent"])
    return f"a device on average; as the chunks differ, they send {each}"


def moment(d, now):
    """What travels in round `now`, and what the devices hold then."""
    k = d["k"]
    if now == 0:
        return f"Round 0 of {steps(d)}: every device holds its own numbers only."
    phase, verb = ("reduce-scatter", "adds") if now < k else ("allgather", "copies")
    doing = ", ".join(
        f"device {i} {verb} chunk {c} from device {(i - 1) % k}"
        for i, c in enumerate(d["ring"][now - 1])
    )
    return f"Round {now} of {steps(d)}, {phase}: {doing}. {_result(d, now)}"


def _result(d, now):
    k = d["k"]
    if now < k - 1:
        return f"What has arrived is the sum of {now + 1} devices."
    if now == k - 1:
        complete = enumerate(d["ring"][k - 2])
        holds = ", ".join(f"device {i} chunk {c}" for i, c in complete)
        return f"Each device holds one chunk of the sum: {holds}."
    if now == steps(d):
        return "Every device holds the whole sum."
    return f"Each device holds {now - k + 2} of {k} chunks of the sum."
