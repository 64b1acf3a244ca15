"""The schedule of a pipeline, slot by slot, for any choice of stages and micro-batches.

The page holds all schedules that it can show, computed by `schedule`.
"""

import re
from itertools import product

from d2l_ext.devices import timeline
from d2l_ext.palette import bar
from d2l_ext.pipeline import microbatch
from d2l_ext.pipeline.schedule import (
    Slot,
    clock,
    gpipe,
    interleaved,
    one_f_one_b,
    op_clock,
    zero_bubble,
)

from . import frame


def _slots(schedule, **lengths):
    """Return the slots by `op_clock`. A device's second stage counts 0′, 1′, …"""
    times, p = op_clock(schedule, **lengths), len(schedule)
    return [Slot(d, op.kind, f"{op.chunk}" + "′" * (op.stage // p), start, end)
            for op, (d, start, end) in times.items()]


#: What can be chosen: name -> a function of p and m, which returns all `Slot`.
SCHEDULES = {
    "GPipe": lambda p, m: clock(gpipe(p, m)),
    "1F1B": lambda p, m: clock(one_f_one_b(p, m)),
    "interleaved 1F1B": lambda p, m: _slots(interleaved(p, m, 2), weights=0),
    "ZB-H1": lambda p, m: _slots(zero_bubble(p, m)),
}
#: The loop that runs a schedule, with backward whole or in two parts.
CODE = frame.listing(
    microbatch.gradients, since="for s, kind, i, *_ in", forward="run.forward(",
    backward=("run.backward(", ".add_up("), input="run.backward(", weights=".add_up(",
)
MAX_STAGES, MAX_CHUNKS = 8, 16
CONTROLS = (
    frame.Select("schedule", "Schedule", tuple(SCHEDULES)),
    frame.Slider("stages", "Stages p", 1, MAX_STAGES),
    frame.Slider("chunks", "Micro-batches m", 1, MAX_CHUNKS),
    frame.Clock(unit="slot"),
)


def figure(schedule="GPipe", stages=4, chunks=8, name="schedule"):
    """Return the figure for a notebook: controls, a drawing, and its explanation in
    words.

    `schedule`: one of `SCHEDULES`. `stages`: 1 to 8. `chunks`: the number of
    micro-batches, 1 to 16; if interleaved, rounded down to a multiple of `stages`, at
    least `stages`. These are the initial choice, the only one without scripts.
    `name`: its id in the page. Raises `ValueError` for values that it cannot show.
    Developed in the chapter *Micro-batches*.
    """
    choice = {"schedule": schedule, "stages": stages, "chunks": chunks}
    return frame.figure("pipeline_schedule", name, "Schedule to show", CONTROLS, choice,
                        data())


def plot(slots, ax):
    """Draw `slots`, from `schedule.clock`, on matplotlib's `ax`, like a timeline."""
    for stage, kind, chunk, start, end in slots:
        span, lane = [(start, end - start)], (stage - 0.4, 0.8)
        ax.broken_barh(span, lane, **{**bar(stage, kind), "linewidth": 1})
        ax.text((start + end) / 2, stage, chunk, ha="center", va="center", fontsize=8,
                bbox={"facecolor": "white", "lw": 0, "pad": 1})
    stages = sorted({slot.stage for slot in slots})
    ax.set_yticks(stages, [f"stage {s}" for s in stages])
    ax.invert_yaxis()
    ax.set(xlim=(0, max(slot.end for slot in slots)), xlabel="slots of the clock")
    if ax is ax.figure.axes[0]:
        timeline.legend(ax, ["forward", "backward"])
    return ax


def data():
    """Return all schedules that can be chosen, for JSON: the lane `FFF.B` is written
    `F3.B`.

    `code`: the lines that run them; and title -> "stages,chunks" -> `lanes`, as by
    `lanes_of`, and `order`: for each letter whose numbers do not ascend from 0, those
    numbers, the same on all devices. If interleaved, p divides m.
    """
    counts = list(product(range(1, MAX_STAGES + 1), range(1, MAX_CHUNKS + 1)))
    lanes = {title: {f"{p},{m}": _packed(make(p, m)) for p, m in counts
                     if "interleaved" not in title or m % p == 0}
             for title, make in SCHEDULES.items()}
    return {"code": CODE, **lanes}


def _packed(slots):
    order = {}
    for slot in slots:
        if slot.stage == 0:
            order.setdefault(slot.kind[0].upper(), []).append(str(slot.chunk))
    order = {letter: " ".join(found) for letter, found in order.items()
             if found != [str(i) for i in range(len(found))]}
    return {"lanes": " ".join(map(run_lengths, lanes_of(slots))), "order": order}


def lanes_of(slots):
    """Return a string per device, a letter per slot: F forward, B backward, . idle.

    Where backward is in two parts, it is I input and W weights. For pieces of one slot.
    """
    length = max(slot.end for slot in slots)
    lanes = [["."] * length for _ in {slot.stage for slot in slots}]
    for slot in slots:
        lanes[slot.stage][slot.start] = slot.kind[0].upper()
    return ["".join(lane) for lane in lanes]


def run_lengths(lane):
    """Shorten runs of a letter: `FFF.B` -> `F3.B`."""
    return re.sub(r"(.)\1+", lambda run: f"{run[1]}{len(run[0])}", lane)
