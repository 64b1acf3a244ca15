"""Draws a schedule as SVG and in words.

Every function has its twin of the same name in `pipeline_schedule.js`. `d`: what
`state` returns. `now`: how many slots of the clock have passed.
"""

import re

from .shapes import ground, ratio, text, work


def state(data, choice):
    """The schedule that is chosen. `width`: of a slot, so that all fit in 560 units."""
    title = choice["schedule"]
    packed = data[title]["lanes"][f"{choice['stages']},{choice['chunks']}"]
    lanes = [unpack(lane) for lane in packed.split(" ")]
    return {"title": title, "lanes": lanes, "last_first": data[title]["last_first"],
            "width": min(40, 560 // len(lanes[0]))}  # fmt: skip


def unpack(lane):
    """`F3.B` -> `FFF.B`: the data count what repeats."""
    return re.sub(r"(.)(\d+)", lambda run: run[1] * int(run[2]), lane)


def steps(d):
    return len(d["lanes"][0])


def height(d):
    return 40 + 30 * len(d["lanes"])


def held(lane, now):
    """Micro-batches whose activations the stage holds after `now` slots."""
    return lane[:now].count("F") - lane[:now].count("B")


def peak(lane):
    return max(held(lane, t + 1) for t in range(len(lane)))


def chunk_at(lane, t, last_first):
    """The number of the micro-batch in slot `t`."""
    before = lane[:t].count(lane[t])
    return lane.count("F") - 1 - before if lane[t] == "B" and last_first else before


def drawing(d, now):
    """The inside of the SVG after `now` slots of the clock."""
    end, x = 60 + steps(d) * d["width"], 60 + now * d["width"]
    bottom = 20 + 30 * len(d["lanes"])
    return (
        text(end + 35, 12, "held / peak")
        + "".join(_row(d, s, now) for s in range(len(d["lanes"])))
        + f'<path d="M{x} 14V{bottom}" stroke="currentColor"/>'
        + text(x, bottom + 13, f"slot {now}")
    )


def _row(d, s, now):
    lane, y, wide = d["lanes"][s], 20 + 30 * s, steps(d) * d["width"]
    cells = [_cell(d, s, t, now) for t, letter in enumerate(lane) if letter != "."]
    return (
        text(25, y + 16, f"stage {s}")
        + ground(60, y, wide, 24)
        + "".join(cells)
        + text(wide + 95, y + 16, f"{held(lane, now)} / {peak(lane)}")
    )


def _cell(d, s, t, now):
    lane, box = d["lanes"][s], (60 + t * d["width"], 20 + 30 * s, d["width"] - 1, 24)
    kind = "backward" if lane[t] == "B" else "forward"
    when = "todo" if t >= now else "now" if t == now - 1 else "done"
    return work(d, s, kind, box, chunk_at(lane, t, d["last_first"]), when)


def summary(d):
    """The schedule in words and numbers."""
    p, slots, m = len(d["lanes"]), steps(d), d["lanes"][0].count("F")
    idle = sum(lane.count(".") for lane in d["lanes"])
    return (
        f"{d['title']}, p = {p} stages, m = {m} micro-batches: {idle} of {p * slots} "
        f"slots are empty. Bubble: (p − 1) / (m + p − 1) = {p - 1}/{m + p - 1} = "
        f"{ratio(100 * idle, p * slots)}%. Peak of micro-batches held, stage by "
        f"stage: {', '.join(str(peak(lane)) for lane in d['lanes'])}."
    )


def moment(d, now):
    """What every stage does in the last slot of `now`."""
    lanes = enumerate(d["lanes"])
    doing = ", ".join(f"stage {s} {_doing(d, lane, now - 1)}" for s, lane in lanes)
    what = doing if now else "nothing has begun"
    return f"Slot {now} of {steps(d)}: {what}."


def _doing(d, lane, t):
    if lane[t] == ".":
        return "waits"
    word = "forward" if lane[t] == "F" else "backward"
    return f"{word} {chunk_at(lane, t, d['last_first'])}"
