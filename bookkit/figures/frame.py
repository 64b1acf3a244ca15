"""The frame of an interactive figure: controls, drawing, words, data and script.

Python computes the numbers and stores them in the page. The script of the figure,
`KIND.js`, draws them and describes them in words: in the page for every choice of the
reader, and once here, in an embedded engine, for the initial choice. Without scripts,
and on paper, readers see that as a picture without controls. `shapes.js` lists the
functions of a script, and has the shared drawing functions; `page.js` connects them
with the controls of the page.
"""

import inspect
import json
import textwrap
from dataclasses import dataclass
from html import escape
from pathlib import Path

import quickjs

from bookkit.show import without_docstrings
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

    def check(self, value):
        if value not in range(self.low, self.high + 1, self.step):
            by = f" in steps of {self.step}" if self.step > 1 else ""
            raise ValueError(f"the figure shows {self.role} from {self.low} to "
                             f"{self.high}{by}, not {value!r}")

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

    def check(self, value):
        if value not in self.options:
            known = ", ".join(self.options)
            raise ValueError(f"unknown {self.role} {value!r}: {known}")

    def html(self, value):
        options = "".join(
            f"<option{' selected' if option == value else ''}>{option}</option>"
            for option in self.options
        )
        return (
            f'<label>{self.label} <select data-role="{self.role}">{options}'
            "</select></label>"
        )


class Fold:
    """Controls that are shown when the reader opens them, under a `label`."""

    def __init__(self, label, *controls):
        self.label, self.controls = label, controls


def flattened(controls):
    """Yield all `controls`, including those in folds."""
    for control in controls:
        yield from control.controls if isinstance(control, Fold) else [control]


@dataclass(frozen=True)
class Clock:
    """A slider over the steps of the drawing, from 0 to `steps(d)`, that can play.

    In the page it begins at 0; without scripts, the end is shown, unless the figure's
    `choice` has a `clock`.

    `unit`: the name of a step, for screen readers.
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
        return (
            f'<span class="clock">{slider}{buttons}'
            '<button type="button" data-role="play">Play</button>'
            '<button type="button" data-role="speed">Speed 1×</button>'
            "</span>"
        )


class Script:
    """The script of a figure in an embedded engine, which shows a choice.

    `kind`, `name`, `data`: as in `page`. Raises `RuntimeError`, which names the figure
    and the request, if the script throws.
    """

    def __init__(self, kind, name, data):
        self.kind, self.name, self.stored = kind, json.dumps(name), _stored(data)
        self._engine = quickjs.Context()
        for file in ("shapes.js", f"{kind}.js"):
            self._run(_read(file), file)
        self._run(f"const stored = {self.stored};", "its data")

    def view(self, choice):
        """Return the page's contents: a dict of `now`, `last`, `box`, `summary` and so
        on.

        `choice`: role -> value. It may leave out the clock, which is then at its end.
        """
        return self.ask(choice, f"view(d{_clock(choice)})")

    def ask(self, choice, what):
        """Return the value of expression `what`; `d` is the state of the choice."""
        others = {role: value for role, value in choice.items() if role != "clock"}
        state = f"chosen(stored, {json.dumps(others)}, {self.name})"
        return json.loads(self._run(f"((d) => JSON.stringify({what}))({state})", what))

    def _run(self, code, what):
        try:
            return self._engine.eval(f'"use strict";{code}')
        except quickjs.JSException as error:
            text = f"the script of the figure {self.kind!r} fails in {what}: {error}"
            raise RuntimeError(text) from None


def figure(kind, name, label, controls, choice, data):
    """Return the figure for a notebook: an `IPython.display.HTML`, the same in every
    run.

    Arguments as in `page`.
    """
    from IPython.display import HTML

    return HTML(page(kind, name, label, controls, choice, data))


def page(kind, name, label, controls, choice, data):
    """Return the HTML of a figure.

    `kind`: names the figure's script, `KIND.js` in this folder. `name`: its id in the
    page; two figures on a page need two names. `label`: the purpose of the controls.
    `controls`: a list of `Slider`, `Select`, `Fold` and at most one `Clock`. `choice`:
    role -> initial value. It may leave out the clock, which is then at its end.
    `data`: for the script's `state`, as JSON can hold it. Raises `ValueError` for a
    value that a control cannot have.
    """
    for control in flattened(controls):
        if not isinstance(control, Clock):
            control.check(choice[control.role])
    first = Script(kind, name, data).view(choice)
    Slider("clock", "", 0, first["last"]).check(choice.get("clock", 0))
    name, summary = escape(name), escape(first["summary"])
    files = "shapes.js", f"{kind}.js", "page.js"
    return f"""<div class="d2l-figure" id="{name}" data-kind="{kind}">
<style>{_read("frame.css")}</style>
<div class="controls" role="group" aria-label="{escape(label)}" hidden>
{_controls(controls, {**choice, **first})}
</div>
<div class="scroll" role="group" aria-label="Drawing" tabindex="0"><svg role="img" \
viewBox="{first["box"]}" aria-label="{summary}" \
fill="currentColor"><defs>{palette.patterns(name)}{_tip(name)}</defs>\
<g class="drawing">{first["drawing"]}</g></svg></div>
<p data-role="moment" aria-live="polite">{escape(first["moment"], quote=False)}</p>
{_code(first["code"])}<p data-role="summary">{escape(first["summary"], quote=False)}</p>
<script type="application/json" class="data">{_stored(data)}</script>
<script>(function () {{
"use strict";
{"".join(map(_read, files))}
live("{kind}");
}})();</script>
</div>"""


def listing(*functions, excerpt=False, since="", **marks):
    """Return lines of the library, for a figure that marks the lines that a step runs.

        listing(reduce_scatter, add="partial[i] += chunks[i][c]")

    `marks`: name -> a part of the lines to mark, or a tuple of such parts. `since`: a
    part of the first line. `excerpt`: leave out lines that are neither marked nor a
    function's first, and their indentation. Returns a dict for the script's `d.code`:
    `lines`, and `marks`, name -> numbers of lines. Raises `ValueError` for a mark that
    is in no line.
    """
    lines = [line for f in functions
             for line in without_docstrings(inspect.getsource(f)).splitlines()
             if line and not line.startswith("@")]
    parts = {name: (part,) if isinstance(part, str) else part
             for name, part in marks.items()}
    wanted = [part for of_one in parts.values() for part in of_one]
    first = next((n for n, line in enumerate(lines) if since in line), 0)
    lines = textwrap.dedent("\n".join(lines[first:])).splitlines()
    if excerpt:
        kept = [line for line in lines if any(x in line for x in ("def ", *wanted))]
        lines = [line if line[:1] != " " else "    " + line.strip() for line in kept]
    missing = [part for part in wanted if not any(part in line for line in lines)]
    if missing:
        names = ", ".join(f.__name__ for f in functions)
        raise ValueError(f"no line of {names} has {missing[0]!r}")
    marks = {
        name: [n for n, line in enumerate(lines) if any(x in line for x in of_one)]
        for name, of_one in parts.items()
    }
    return {"lines": lines, "marks": marks}


def _code(lines):
    return lines and (
        '<pre class="code" role="group" tabindex="0" aria-label="The library\'s lines, '
        f'those of this step marked">{lines}</pre>\n'
    )


def _controls(controls, choice):
    reset = '<button type="button" data-role="reset">Reset</button>'
    return "\n".join([*(_control(control, choice) for control in controls), reset])


def _control(control, choice):
    if isinstance(control, Fold):
        inside = "\n".join(_control(one, choice) for one in control.controls)
        return (f"<details><summary>{control.label}</summary>\n"
                f'<div class="fold">{inside}</div></details>')
    if isinstance(control, Clock):
        return control.html(choice["now"], choice["last"])
    return control.html(choice[control.role])


def _clock(choice):
    return f", {choice['clock']}" if "clock" in choice else ""


def _tip(name):
    """Return the tip of an arrow."""
    return (
        f'<marker id="{name}-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" stroke="none"/>'
        "</marker>"
    )


def _read(file):
    return (_HERE / file).read_text("utf-8")


def _stored(data):
    """Return the data and the language's colours. No `<` can end the script."""
    held = {"colours": palette.DEVICE_COLOURS, "inks": palette.INKS, "data": data}
    return json.dumps(held, separators=(",", ":")).replace("<", "\\u003c")
