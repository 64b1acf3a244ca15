"""Does it fit, and how fast? Memory and time of a step of a model on a mesh.

The script computes what `memory.bytes_held`, `bytes_sent` and `step.mesh_seconds` do;
a test compares the two on random settings. It shares functions with
`cost_calculator.js`, and has a frame of its own, in which the answer comes first.
"""

import re
from dataclasses import dataclass
from html import escape
from math import prod

import quickjs

from d2l_ext import palette
from d2l_ext.checks import known_name
from d2l_ext.memory import STAGES
from d2l_ext.palette import SERIES_COLOURS, SERIES_ON_DARK
from d2l_ext.scale.step import BACKWARD

from . import frame
from .cost_calculator import _LARGE, OWN, TOKENS, Number

#: What the script takes from the cost calculator's.
SHARED = ("linkOf", "ringSeconds", "divisor", "hostOf", "meshOf", "onMesh", "whole",
          "digits", "time", "percent")
#: Bytes of a weight, and those that the optimizer keeps for it.
NUMBERS = {"16 bits, Adam": (2, 12), "32 bits, Adam": (4, 8), "32 bits, SGD": (4, 0)}
#: The three of MosaicML's tables, with their parameters, and one of this book.
MODELS = {
    "1 B": {"parameters": 1_315_950_592, "layers": 24, "width": 2048, "tokens": 2048},
    "7 B": {"parameters": 6_658_859_008, "layers": 32, "width": 4096, "tokens": 2048},
    "70 B": {"parameters": 64_862_437_376, "layers": 80, "width": 8192,
             "tokens": 2048},
    "the book's large decoder": {
        "parameters": sum(map(prod, _LARGE.shapes().values())),
        "layers": _LARGE.layers, "width": _LARGE.width, "tokens": TOKENS},
}
#: TFLOP/s, GB, devices in a host, Gbit/s and µs inside a host and between hosts.
MACHINES = {
    "H100, NVLink, 400 Gbit/s": {
        "peak": 989, "memory": 80, "per_host": 8, "inside": 3600, "nearby": 5,
        "bandwidth": 400, "latency": 20},
    "laptops, 1 Gbit/s": {
        "peak": 0.2, "memory": 16, "per_host": 1, "inside": 100, "nearby": 5,
        "bandwidth": 1, "latency": 100},
}


@dataclass(frozen=True)
class Field:
    """A number to type, from `low` to `high`."""

    role: str
    label: str
    unit: str
    low: float
    high: float
    whole: bool = False

    check = Number.check

    def html(self, value):
        room = 'style="width: 9rem" ' if self.high > 1e9 else ""  # for all its digits
        return (
            f'<span class="pair"><label>{self.label} <input type="number" {room}'
            f'data-role="{self.role}" min="{self.low:g}" max="{self.high:g}" '
            f'step="{1 if self.whole else "any"}" value="{value:.15g}"> {self.unit}'
            "</label></span>"
        )


FIELDS = (
    Field("devices", "Devices", "", 1, 16384, whole=True),
    Field("tensor", "Tensor", "", 1, 64, whole=True),
    Field("pipeline", "Pipeline", "", 1, 128, whole=True),
    Field("micro", "Micro-batch", "texts", 1, 4096, whole=True),
    Field("chunks", "Micro-batches a step", "", 1, 4096, whole=True),
    Field("parameters", "Parameters", "", 1e3, 1e13),
    Field("layers", "Layers", "", 1, 1024, whole=True),
    Field("width", "Width", "", 1, 131072, whole=True),
    Field("tokens", "Tokens of a text", "", 1, 1048576, whole=True),
    Field("peak", "Peak of a device", "TFLOP/s", 1e-3, 1e5),
    Field("reach", "of which products reach", "%", 1, 100),
    Field("memory", "Memory of a device", "GB", 0.1, 1e4),
    Field("reserve", "kept in reserve", "GB", 0, 1e3),
    Field("per_host", "Devices in a host", "", 1, 4096, whole=True),
    Field("inside", "Bandwidth in a host", "Gbit/s", 0.01, 1e5),
    Field("nearby", "Latency in a host", "µs", 0, 1e5),
    Field("bandwidth", "Bandwidth between hosts", "Gbit/s", 0.01, 1e5),
    Field("latency", "Latency between hosts", "µs", 0, 1e5),
)
_OF = {field.role: field for field in FIELDS}
CONTROLS = (
    frame.Select("model", "Model", (*MODELS, OWN)),
    frame.Select("machine", "Devices and links", (*MACHINES, OWN)),
    *(_OF[role] for role in ("devices", "tensor", "pipeline")),
    frame.Select("zero", "ZeRO divides", STAGES),
    *(_OF[role] for role in ("micro", "chunks")),
    frame.Select("recompute", "Compute activations again", ("no", "yes")),
    frame.Fold(
        "Own numbers: the model, the device, the links",
        frame.Select("numbers", "Numbers", tuple(NUMBERS)),
        *(_OF[role] for role in MODELS["1 B"]),
        *(_OF[role] for role in ("peak", "reach", "memory", "reserve", "per_host",
                                 "inside", "nearby", "bandwidth", "latency")),
        frame.Select("overlap", "Exchange behind backward", ("yes", "no")),
    ),
)
FIRST = {
    "model": "7 B", "machine": "H100, NVLink, 400 Gbit/s", "devices": 8, "tensor": 1,
    "pipeline": 1, "zero": "parameters", "micro": 6, "chunks": 1, "recompute": "no",
    "numbers": "16 bits, Adam", **MODELS["7 B"],
    **MACHINES["H100, NVLink, 400 Gbit/s"], "reach": 55, "reserve": 5, "overlap": "yes",
}
#: Published: the choice, tokens/s of a device, percent MFU.
MEASURED = [
    ({"model": "1 B", "devices": 8, "micro": 14}, 45_455, 41.82),
    ({"model": "7 B", "devices": 8, "micro": 6}, 10_643, 46.44),
    ({"model": "7 B", "devices": 128, "micro": 6}, 10_475, 45.71),
    ({"model": "70 B", "devices": 64, "micro": 8, "chunks": 4, "recompute": "yes"},
     1_039, 42.57),
    ({"model": "70 B", "devices": 512, "micro": 8, "recompute": "yes"}, 1_007, 41.25),
]
#: Published of 7.5 billion parameters on 64 devices: GB on each, by what is divided.
ZERO = dict(zip(STAGES, (120.0, 31.4, 16.6, 1.9)))


class FitsScript(frame.Script):
    """A figure's script with the functions that it shares with the cost calculator."""

    def __init__(self, name="fits"):
        self.kind, self.name = "fits", f'"{name}"'
        self.stored, self._engine = frame._stored(data()), quickjs.Context()
        self._run(source(), "fits.js")
        self._run(f"const stored = {self.stored};", "its data")


def source():
    """Return the script without the page's part: shapes, functions shared and own."""
    calculator = frame._read("cost_calculator.js")
    shared = [re.search(rf"(?ms)^function {name}\(.*?^}}\n", calculator)[0]
              for name in SHARED]
    return "\n".join([frame._read("shapes.js"), *shared, frame._read("fits.js")])


def chosen(**other):
    """Return the first choice with `other` values, and its model's and machine's.

    A number of a model or machine without its name makes it one's own.
    """
    own = {role: OWN for role, presets in (("model", MODELS), ("machine", MACHINES))
           if not other.keys().isdisjoint(presets[FIRST[role]])}
    choice = {**FIRST, **own, **other}
    presets = {**MODELS.get(other.get("model"), {}),
               **MACHINES.get(other.get("machine"), {})}
    return {**choice, **presets, **other}


def figure(name="fits", **other):
    """Return the tool for a page: the answer, the choices, the drawing, published
    results.

    `name`: its id in the page. `other`: values of `CONTROLS`, by role, that replace the
    initial ones. Raises `ValueError` for an unknown role, and a value that a control
    cannot have. On the page *Does it fit, and how fast?*
    """
    from IPython.display import HTML

    for role in other:
        known_name("role", role, FIRST)
    choice, script = chosen(**other), FitsScript(name)
    for control in frame.flattened(CONTROLS):
        control.check(choice[control.role])
    first, name = script.view(choice), escape(name)
    summary, moment = (escape(first[x], quote=False) for x in ("summary", "moment"))
    return HTML(f"""<div class="d2l-figure" id="{name}" data-kind="fits">
<style>{frame._read("frame.css")}</style>
<p data-role="moment" aria-live="polite" style="font-weight: bold; font-size: 1.05rem">\
{moment}</p>
<div class="controls" role="group" aria-label="Model and devices" \
style="margin-top: 0.8rem" hidden>
{frame._controls(CONTROLS, choice)}
</div>
<div class="scroll" role="group" aria-label="Drawing" tabindex="0"><svg role="img" \
viewBox="{first["box"]}" aria-label="{escape(first["summary"])}" \
fill="currentColor"><defs>{palette.patterns(name)}</defs>\
<g class="drawing">{first["drawing"]}</g></svg></div>
<p data-role="summary">{summary}</p>
<script type="application/json" class="data">{script.stored}</script>
<script>(function () {{
"use strict";
{source()}{frame._read("page.js")}
live("fits");
}})();</script>
</div>
{published()}""")


def published():
    """Return two tables: published times and memory of a step, beside the tool's."""
    script, steps = FitsScript(), []
    for choice, published_speed, published_mfu in MEASURED:
        d = script.ask(chosen(**choice), "d")
        split = f"{d['chunks']} × {d['micro']} texts" + ", again" * d["again"]
        steps.append((
            d["model"], d["devices"], f"{d['zero']}; {split}",
            f"{published_speed:,}", f"{published_mfu:.1f}%",
            f"{d['per_second'] / d['devices']:,.0f}", f"{100 * d['mfu']:.1f}%",
            f"{d['bytes'] / 1e9:.1f} GB",
        ))
    memory = [(stage, f"{gb:.1f} GB", f"{states_in_paper(script, stage):.1f} GB")
              for stage, gb in ZERO.items()]
    return (
        _table("A step on H100s; tokens per second of one device",
               ("Model", "Devices", "ZeRO divides; a step", "published tokens/s",
                "published MFU", "computed tokens/s", "computed MFU",
                "computed memory"), steps)
        + _table("Weights, gradients and states of 7.5 billion parameters, 64 devices",
                 ("ZeRO divides", "published", "computed"), memory)
    )


def states_in_paper(script, stage):
    """Return GB of weights, gradients and states in the example of ZeRO's paper."""
    choice = chosen(model=OWN, parameters=7.5e9, devices=64, zero=stage)
    return sum(n for _, n in script.ask(choice, "d.memory_of.slice(0, 3)")) / 1e9


def _table(caption, heads, rows):
    head = "".join(f'<th scope="col">{x}</th>' for x in heads)
    body = "".join(
        "<tr>" + "".join(f'<td data-label="{h}">{x}</td>' for h, x in zip(heads, row))
        + "</tr>" for row in rows)
    return (f'<p><strong>{caption}</strong></p>\n<table class="table" '
            f'aria-label="{caption}"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table>\n")


def data():
    """Return the page's data, for JSON: presets, limits of numbers, constants."""
    return {"models": MODELS, "machines": MACHINES, "numbers": NUMBERS, "zero": STAGES,
            "limits": {f.role: [f.low, f.high, f.whole] for f in FIELDS},
            "backward": BACKWARD, "colours": tuple(zip(SERIES_COLOURS, SERIES_ON_DARK))}
