"""The frame of an interactive figure: controls, drawing, words, data and script.

Python computes what there is to see, and stores it in the page; the page's script only
chooses and draws. Without scripts, and on paper, the first choice stands there as a
picture, and no control shows. A figure is a module with these functions, and a file
`KIND.js` with twins of the same names, which ends with `figure("KIND", {state, …})`:

    state(data, choice)   what there is to draw, a dictionary; `choice` maps the roles
                          of the controls to their values, without the clock's
    steps(d)              the clock's last step; only needed with a `Clock`
    height(d)             of the drawing, which is 700 wide
    drawing(d, now)       the inside of the SVG after `now` steps of the clock
    summary(d)            all of it in words and numbers
    moment(d, now)        in words, what happens in step `now`

The frame adds `d["name"]`, the figure's id.
"""

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path

from d2l_ext import palette

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Slider:
    """A number that the reader chooses, from `low` to `high`."""

    role: str
    label: str
    low: int
    high: int
    step: int = 1

    def html(self, value):
        return (
            f'<label>{self.label} <input type="range" data-role="{self.role}" '
            f'min="{self.low}" max="{self.high}" step="{self.step}" value="{value}">'
            f'<b data-role="{self.role}-value">{value}</b></label>'
        )


@dataclass(frozen=True)
class Select:
    """One of several words that the reader chooses."""

    role: str
    label: str
    options: tuple

    def html(self, value):
        options = "".join(
            f"<option{' selected' if option == value else ''}>{option}</option>"
            for option in self.options
        )
        return (
            f'<label>{self.label} <select data-role="{self.role}">{options}'
            "</select></label>"
        )


@dataclass(frozen=True)
class Clock:
    """A slider over the steps of the drawing, from 0 to `steps(d)`, with two buttons.

    `unit`: what a step is called, for those who hear the buttons' names.
    """

    label: str = "Clock"
    unit: str = "step"
    role: str = "clock"

    def html(self, value, last):
        buttons = "".join(
            f'<button type="button" data-role="{role}" '
            f'aria-label="One {self.unit} {role}">{sign}</button>'
            for role, sign in (("back", "‹"), ("on", "›"))
        )
        slider = Slider(self.role, self.label, 0, last).html(value)
        return f'<span class="clock">{slider}{buttons}</span>'


def figure(kind, name, label, controls, choice, data, twin):
    """The figure for a notebook: an `IPython.display.HTML`, the same in every run.

    Arguments as in `page`.
    """
    from IPython.display import HTML

    return HTML(page(kind, name, label, controls, choice, data, twin))


def page(kind, name, label, controls, choice, data, twin):
    """The HTML of a figure.

    `kind`: names the figure's script, `KIND.js` in this folder. `name`: its id in the
    page; two figures on a page need two names. `label`: what the controls are for.
    `controls`: a list of `Slider`, `Select` and at most one `Clock`. `choice`: role ->
    value at first. The clock is optional there, and at its end by default. `data`: for
    `state`, as JSON can hold it. `twin`: the module with the functions above.
    """
    d, now, last = _first(twin, data, choice, controls, name)
    name, script = escape(name), "".join(
        (_HERE / file).read_text("utf-8") for file in ("frame.js", f"{kind}.js")
    )  # fmt: skip
    words = escape(twin.summary(d), quote=False)
    return f"""<div class="d2l-figure" id="{name}" data-kind="{kind}">
<style>{(_HERE / "frame.css").read_text("utf-8")}</style>
<div class="controls" role="group" aria-label="{escape(label)}" hidden>
{_controls(controls, choice, now, last)}
</div>
<div class="scroll" role="group" aria-label="Drawing" tabindex="0"><svg role="img" \
viewBox="0 0 700 {twin.height(d)}" aria-label="{escape(twin.summary(d))}" \
fill="currentColor"><defs>{palette.patterns(name)}{_tip(name)}</defs>\
<g class="drawing">{twin.drawing(d, now)}</g></svg></div>
<p data-role="summary">{words}</p>
<p data-role="moment" aria-live="polite">{escape(twin.moment(d, now), quote=False)}</p>
<script type="application/json" class="data">{_json(data)}</script>
<script>(function () {{
"use strict";
{script}}})();</script>
</div>"""


def _first(twin, data, choice, controls, name):
    """What is drawn at first, the step of the clock, and its last one."""
    others = {role: value for role, value in choice.items() if role != "clock"}
    d = {**twin.state(data, others), "name": name}
    has_clock = any(isinstance(control, Clock) for control in controls)
    last = twin.steps(d) if has_clock else 0
    return d, min(choice.get("clock", last), last), last


def _controls(controls, choice, now, last):
    return "\n".join(
        control.html(now, last)
        if isinstance(control, Clock)
        else control.html(choice[control.role])
        for control in controls
    )


def _tip(name):
    """The tip of an arrow."""
    return (
        f'<marker id="{name}-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" stroke="none"/>'
        "</marker>"
    )


def _json(data):
    """The data and the language's colours. No `<` can end the script's element."""
    held = {"colours": palette.DEVICE_COLOURS, "inks": palette.INKS, "data": data}
    return json.dumps(held, separators=(",", ":")).replace("<", "\\u003c")
