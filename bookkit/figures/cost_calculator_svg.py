"""Draws the cost of a step as SVG: its lanes, its numbers, and curves over devices.

Every function has its twin of the same name in `cost_calculator.js`. `d`: what `state`
returns. There is no clock: `now` is 0.
"""

from math import log2

from d2l_ext.palette import colour

from .cost_calculator_state import state
from .cost_calculator_words import (
    called,
    decimal,
    digits,
    moment,
    percent,
    summary,
    time,
    whole,
)
from .shapes import ground, number, text, work

__all__ = ["drawing", "height", "moment", "state", "summary"]

#: The dashes of the ways' curves, in the order of `exchange.WAYS`.
DASHES = ("2 3", "9 4", "none", "9 3 2 3")
#: Where the lanes and the chart are.
LEFT, WIDTH, BOTTOM, HIGH, OCTAVE = 90, 560, 290, 150, 40


def height(d):
    return BOTTOM + 40


def drawing(d, now):
    """The lanes of a step, the numbers, and the curves."""
    return _lanes(d) + _results(d) + _axes(d) + _curves(d)


def _lanes(d):
    bars = (
        ("computing", "forward", 0, d["compute"]),
        ("exchange", "copy", d["compute"] - d["hidden"], d["moved"]),
    )
    found = []
    for i, (name, kind, begin, long) in enumerate(bars):
        y, x = 4 + 24 * i, LEFT + whole(WIDTH * begin / d["seconds"])
        end = LEFT + whole(WIDTH * (begin + long) / d["seconds"])
        bar = work(d, 0, kind, (x, y, end - x, 18)) if end > x else ""
        found.append(text(45, y + 13, name) + ground(LEFT, y, WIDTH, 18) + bar)
    return "".join(found) + text(LEFT + WIDTH, 64, f"{time(d['seconds'])}", "end")


def _results(d):
    shown = (
        ("step", time(d["seconds"])),
        ("waiting for the exchange", percent(d["waiting"])),
        ("efficiency", decimal(d["efficiency"])),
        ("speed-up", digits(d["speed_up"])),
        ("examples per second", digits(d["per_second"])),
    )
    return "".join(
        text(70 + 140 * i, 92, value, size=17, state="now")
        + text(70 + 140 * i, 110, name)
        for i, (name, value) in enumerate(shown)
    )


def _axes(d):
    top, right = BOTTOM - HIGH, LEFT + OCTAVE * (len(d["on"]) - 1)
    lines = "".join(
        f'<path stroke="currentColor" stroke-opacity="0.25" d="M{LEFT} {y}H{right}"/>'
        for y in (top, top + HIGH // 2, BOTTOM)
    )
    ticks = "".join(
        text(LEFT + OCTAVE * i, BOTTOM + 15, number(k))
        for i, k in list(enumerate(d["on"]))[::2]
    )
    return (
        lines
        + text(LEFT - 8, top + 4, "1", "end")
        + text(LEFT - 8, BOTTOM + 4, "0", "end")
        + text(LEFT - 8, top + HIGH // 2 + 4, "efficiency", "end")
        + ticks
        + text((LEFT + right) // 2, BOTTOM + 32, "devices")
    )


def _curves(d):
    chosen = d["ways"].index(d["way"])
    at, y = LEFT + whole(OCTAVE * log2(d["devices"])), _y(d["efficiency"])
    lines = "".join(_curve(d, i, i == chosen) for i in range(len(d["ways"])))
    return lines + f'<circle cx="{at}" cy="{y}" r="5" fill="{colour(chosen)}"/>' + text(
        at, y - 9, decimal(d["efficiency"]), state="now"
    )


def _curve(d, i, chosen):
    points = [f"{LEFT + OCTAVE * n} {_y(e)}" for n, e in enumerate(d["curves"][i])]
    style = (
        f'fill="none" stroke="{colour(i)}" stroke-width="{3 if chosen else 2}" '
        f'stroke-dasharray="{DASHES[i]}"'
    )
    y, state = BOTTOM - HIGH + 10 + 22 * i, "now" if chosen else ""
    return (
        f'<path d="M{"L".join(points)}" {style}/><path d="M592 {y}H612" {style}/>'
        + text(617, y + 4, called(d, d["ways"][i]), "start", state=state)
    )


def _y(efficiency):
    return BOTTOM - whole(HIGH * efficiency)
