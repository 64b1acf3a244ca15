"""An interactive drawing of a schedule: inline SVG, a few controls, and no network.

The page holds all schedules that it can show, computed by `schedule`; its script
only draws them. Without scripts, the first one stands there as a picture.
"""

import json
import re
from html import escape
from pathlib import Path

from .schedule import clock, gpipe, one_f_one_b
from .schedule_svg import drawing, lanes_of, moment, picture, summary
from .timeline import DEVICE_COLOURS, KIND_HATCHES

#: What can be chosen: name -> (function, whether backward starts with the last).
SCHEDULES = {"GPipe": (gpipe, True), "1F1B": (one_f_one_b, False)}
MAX_STAGES, MAX_CHUNKS = 8, 16
_HERE = Path(__file__).parent


def figure(schedule="GPipe", stages=4, chunks=8, name="schedule"):
    """The figure for a notebook: a drawing with controls below which it is explained.

    `schedule`: `'GPipe'` or `'1F1B'`. `stages`: 1 to 8. `chunks`: the number of
    micro-batches, 1 to 16. These are shown at first, and without scripts for good.
    `name`: its id in the page; a page with two figures needs two names.

    Raises `ValueError` for what the figure cannot show.
    Developed in the chapter *Micro-batches*.
    """
    from IPython.display import HTML

    return HTML(page(schedule, stages, chunks, name))


def plot(slots, ax):
    """Draw `slots`, from `schedule.clock`, on matplotlib's `ax`, as a timeline is."""
    for stage, kind, chunk, start, end in slots:
        ax.broken_barh([(start, end - start)], (stage - 0.4, 0.8),
                       facecolor=DEVICE_COLOURS[stage % len(DEVICE_COLOURS)],
                       hatch=KIND_HATCHES[kind], edgecolor="white")  # fmt: skip
        ax.text((start + end) / 2, stage, chunk, ha="center", va="center", fontsize=8,
                bbox={"facecolor": "white", "lw": 0, "pad": 1})  # fmt: skip
    stages = sorted({slot.stage for slot in slots})
    ax.set_yticks(stages, [f"stage {s}" for s in stages])
    ax.invert_yaxis()
    ax.set(xlim=(0, max(slot.end for slot in slots)), xlabel="slots of the clock")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def page(schedule, stages, chunks, name):
    """The HTML of `figure`, the same in every run."""
    _check(schedule, stages, chunks)
    name = escape(name)
    make, last_first = SCHEDULES[schedule]
    d = picture(name, schedule, lanes_of(clock(make(stages, chunks))), last_first)
    slots = len(d["lanes"][0])
    return f"""<div class="schedule-figure" id="{name}">
<style>{(_HERE / "schedule_figure.css").read_text()}</style>
{_controls(schedule, stages, chunks, slots)}
<div class="scroll"><svg role="img" viewBox="0 0 700 {40 + 30 * stages}" \
aria-label="{escape(summary(d))}" font-size="11" text-anchor="middle" \
fill="currentColor"><defs><pattern id="{name}-stripes" width="6" height="6" \
patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6" \
stroke="#fff" stroke-width="2"/></pattern></defs>\
<g class="drawing">{drawing(d, slots)}</g></svg></div>
<p data-role="summary">{summary(d)}</p>
<p data-role="moment" aria-live="polite">{moment(d, slots)}</p>
<script type="application/json" class="data">{data()}</script>
<script>{(_HERE / "schedule_figure.js").read_text()}</script>
</div>"""


def data():
    """All schedules that can be chosen, as JSON: `FFF.B` is written `F3.B`."""
    found = {"colours": DEVICE_COLOURS}
    for title, (make, last_first) in SCHEDULES.items():
        lanes = {
            f"{p},{m}": " ".join(pack(x) for x in lanes_of(clock(make(p, m))))
            for p in range(1, MAX_STAGES + 1)
            for m in range(1, MAX_CHUNKS + 1)
        }
        found[title] = {"last_first": last_first, "lanes": lanes}
    return json.dumps(found, separators=(",", ":"))


def pack(lane):
    """Count what repeats: `FFF.B` -> `F3.B`."""
    return re.sub(r"(.)\1+", lambda run: f"{run[1]}{len(run[0])}", lane)


def _controls(schedule, stages, chunks, slots):
    def slider(role, label, low, high, value):
        return (
            f'<label>{label} <input type="range" data-role="{role}" min="{low}" '
            f'max="{high}" value="{value}"><b data-role="{role}-value">{value}</b>'
            "</label>"
        )

    options = "".join(
        f"<option{' selected' if title == schedule else ''}>{title}</option>"
        for title in SCHEDULES
    )
    return f"""<div class="controls" role="group" aria-label="Schedule to show" hidden>
<label>Schedule <select data-role="schedule">{options}</select></label>
{slider("stages", "Stages p", 1, MAX_STAGES, stages)}
{slider("chunks", "Micro-batches m", 1, MAX_CHUNKS, chunks)}
{slider("clock", "Clock", 0, slots, slots)}
<button type="button" data-role="back" aria-label="One slot back">‹</button>
<button type="button" data-role="on" aria-label="One slot on">›</button>
</div>"""


def _check(schedule, stages, chunks):
    if schedule not in SCHEDULES:
        raise ValueError(f"unknown schedule {schedule!r}: {' or '.join(SCHEDULES)}")
    for what, value, most in (
        ("stages", stages, MAX_STAGES), ("micro-batches", chunks, MAX_CHUNKS),
    ):  # fmt: skip
        if value not in range(1, most + 1):
            raise ValueError(f"the figure shows 1 to {most} {what}, not {value!r}")
