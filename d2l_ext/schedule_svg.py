"""Draws a schedule as SVG and in words.

Every function has its twin of the same name in `schedule_figure.js`, which draws what
the reader chooses; a test compares what they make. `d`: what `picture` returns. `now`:
how many slots of the clock have passed.
"""

from .timeline import DEVICE_COLOURS


def picture(name, title, lanes, last_first):
    """What there is to draw, as a dictionary.

    `name`: the id of the figure. `title`: the name of the schedule. `lanes`: as
    `lanes_of` returns them. `last_first`: whether backward work starts with the last
    micro-batch. `width`: of a slot, so that all fit into 560 units.
    """
    width = min(40, 560 // len(lanes[0]))
    return {"name": name, "title": title, "lanes": lanes, "last_first": last_first,
            "width": width}  # fmt: skip


def lanes_of(slots):
    """A string per stage, a letter per slot: F forward, B backward, . nothing."""
    length = max(slot.end for slot in slots)
    lanes = [["."] * length for _ in {slot.stage for slot in slots}]
    for slot in slots:
        lanes[slot.stage][slot.start] = slot.kind[0].upper()
    return ["".join(lane) for lane in lanes]


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
    slots, stages = len(d["lanes"][0]), len(d["lanes"])
    end, x, bottom = 60 + slots * d["width"], 60 + now * d["width"], 20 + 30 * stages
    return (
        f'<text x="{end + 35}" y="12">held / peak</text>'
        + "".join(_row(d, s, now) for s in range(stages))
        + f'<path d="M{x} 14V{bottom}" stroke="currentColor"/>'
        + f'<text x="{x}" y="{bottom + 13}">slot {now}</text>'
    )


def _row(d, s, now):
    lane, y, end = d["lanes"][s], 20 + 30 * s, 60 + len(d["lanes"][s]) * d["width"]
    cells = [_cell(d, s, t, now) for t, letter in enumerate(lane) if letter != "."]
    return (
        f'<text x="25" y="{y + 16}">stage {s}</text>'
        f'<rect x="60" y="{y}" width="{end - 60}" height="24" opacity="0.08"/>'
        + "".join(cells)
        + f'<text x="{end + 35}" y="{y + 16}">{held(lane, now)} / {peak(lane)}</text>'
    )


def _cell(d, s, t, now):
    lane, x, y = d["lanes"][s], 60 + t * d["width"], 20 + 30 * s
    i = s % len(DEVICE_COLOURS)
    fill, state = DEVICE_COLOURS[i], "todo" if t >= now else "done"
    box = f'x="{x}" y="{y}" width="{d["width"] - 1}" height="24" rx="2"'
    stripes = halo = ""
    if lane[t] == "B":
        stripes = f'<rect {box} fill="url(#{d["name"]}-stripes)"/>'
        halo = f' stroke="{fill}" stroke-width="3" paint-order="stroke"'
    return (
        f'<g class="{"now" if t == now - 1 else state}"><rect {box} fill="{fill}"/>'
        f'{stripes}<text x="{x + d["width"] // 2}" y="{y + 16}" '
        f'font-size="{11 if d["width"] > 15 else 8}" '
        f'class="{"on-light" if i else "on-blue"}"{halo}>'
        f"{chunk_at(lane, t, d['last_first'])}</text></g>"
    )


def summary(d):
    """The schedule in words and numbers."""
    p, slots, m = len(d["lanes"]), len(d["lanes"][0]), d["lanes"][0].count("F")
    idle = sum(lane.count(".") for lane in d["lanes"])
    return (
        f"{d['title']}, p = {p} stages, m = {m} micro-batches: {idle} of {p * slots} "
        f"slots are empty. Bubble: (p − 1) / (m + p − 1) = {p - 1}/{m + p - 1} = "
        f"{int(100 * idle / (p * slots) + 0.5)}%. Peak of micro-batches held, stage by "
        f"stage: {', '.join(str(peak(lane)) for lane in d['lanes'])}."
    )


def moment(d, now):
    """What every stage does in the last slot of `now`."""
    lanes = enumerate(d["lanes"])
    doing = ", ".join(f"stage {s} {_work(d, lane, now - 1)}" for s, lane in lanes)
    what = doing if now else "nothing has begun"
    return f"Slot {now} of {len(d['lanes'][0])}: {what}."


def _work(d, lane, t):
    if lane[t] == ".":
        return "waits"
    word = "forward" if lane[t] == "F" else "backward"
    return f"{word} {chunk_at(lane, t, d['last_first'])}"
