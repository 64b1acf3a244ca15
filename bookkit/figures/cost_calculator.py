"""The cost of a training step on a cluster: numbers to choose, a curve over devices.

Without a kernel the figure's script computes what `d2l_ext.scale.step` does; a test
compares the two over a grid of settings. Its mesh has the bytes of `meshes.decoder` for
a stage in the middle, with equal shares.
"""

from dataclasses import dataclass
from math import inf, log, prod

from d2l_ext.scale import step
from d2l_ext.scale.step import LENET, LSTM, VGG11, Link, Model
from d2l_ext.tensor_parallel.transformer import Decoder

from . import frame

#: The words to choose from, the first of which is chosen at first.
SCALING = ("each device", "all devices")
SENT = ("array by array, during backward", "array by array, after it",
        "in one array, after it")
OWN = "own numbers"
#: A link inside a host: 450 GB/s.
FAST = Link(5e-6, 1 / 450e9)
#: Ways of the exchange whose seconds the script knows.
WAYS = ("naive", "tree", "ring", "halving", "servers", "hierarchy", "mesh")
#: The large decoder of *Data × tensor × pipeline*; an example is a text.
_LARGE, TOKENS = Decoder(32_000, width=7168, heads=56, layers=48, tied=False), 2048
_shapes = [prod(shape) for shape in _LARGE.shapes().values()]
_count = sum(_shapes)
DECODER = Model("large decoder", _count, len(_shapes), 6.0 * _count * TOKENS)
#: For a mesh, of an example: the numbers that go from stage to stage, and how often
#: they are summed along the axis tensor, forward and backward.
MODELS = {LENET: (800, 8), VGG11: (4096, 22), LSTM: (35 * 1500, 4),
          DECODER: (TOKENS * _LARGE.width, 4 * _LARGE.layers)}


@dataclass(frozen=True)
class Number:
    """A number to type, from `low` to `high`, beside a slider on a logarithmic scale.

    A step of the slider multiplies by 2 if the number is `whole`, else by 10^(1/10).
    The slider begins at `least`, `low` by default: a logarithm cannot begin at 0.
    """

    role: str
    label: str
    unit: str
    low: float
    high: float
    whole: bool = False
    least: float = None

    def check(self, value):
        broken = self.whole and value % 1 != 0
        if broken or not self.low <= value <= self.high:
            whole = " in whole numbers" if broken else ""
            raise ValueError(f"the figure shows {self.role} from {self.low:g} to "
                             f"{self.high:g}{whole}, not {value!r}")

    def html(self, value):
        base, by = (2, "1") if self.whole else (10, "0.1")
        edges = [round(log(x, base), 6) for x in (self.least or self.low, self.high)]
        at = max(edges[0], log(value, base)) if value else edges[0]
        return (
            f'<span class="pair"><label>{self.label} <input type="number" '
            f'data-role="{self.role}" min="{self.low:g}" max="{self.high:g}" '
            f'step="{1 if self.whole else "any"}" value="{value:.12g}"> {self.unit}'
            f'</label><input type="range" data-of="{self.role}" data-base="{base}" '
            f'aria-label="{self.label}, logarithmic" min="{edges[0]:g}" '
            f'max="{edges[1]:g}" step="{by}" value="{at:.3f}"></span>'
        )


NUMBERS = (
    Number("parameters", "Parameters", "", 1e3, 1e12),
    Number("arrays", "Arrays", "", 1, 16384, whole=True),
    Number("example", "Computing", "µs per example", 0.01, 1e9),
    Number("overhead", "Overhead", "ms per step", 0, 1e4, least=0.01),
    Number("batch", "Batch", "examples", 1, 2**24, whole=True),
    Number("devices", "Devices", "", 1, 4096, whole=True),
    Number("bandwidth", "Bandwidth", "Gbit/s", 0.01, 1e4),
    Number("latency", "Latency", "µs", 0, 1e5, least=0.1),
    Number("servers", "Servers", "", 1, 4096, whole=True),
    Number("packing", "Packing", "ns per byte", 0, 100, least=0.01),
    Number("per_host", "Devices in a host", "", 1, 4096, whole=True),
    Number("inside", "Bandwidth in a host", "Gbit/s", 0.01, 1e5),
    Number("nearby", "Latency in a host", "µs", 0, 1e5, least=0.1),
    Number("tensor", "Mesh: tensor", "", 1, 64, whole=True),
    Number("pipeline", "Mesh: pipeline", "", 1, 64, whole=True),
    Number("chunks", "Micro-batches", "", 1, 1024, whole=True),
    Number("border", "From stage to stage", "numbers", 1, 1e9),
    Number("sums", "Sums along tensor", "", 1, 4096, whole=True),
)
_OF = {number.role: number for number in NUMBERS}
CONTROLS = (
    frame.Select("model", "Model", (*(m.name for m in MODELS), OWN)),
    frame.Select("way", "Exchange", WAYS),
    *(_OF[role] for role in ("batch", "devices", "bandwidth")),
    frame.Fold(
        "Advanced: the network, the links, hosts, servers, a mesh",
        *(_OF[role] for role in ("parameters", "arrays", "example", "overhead")),
        frame.Select("scaling", "Batch of", SCALING),
        frame.Select("sent", "Gradients", SENT),
        *(_OF[role] for role in (
            "latency", "per_host", "inside", "nearby", "tensor", "pipeline", "chunks",
            "border", "sums", "servers")),
        frame.Select("compression", "Two-bit push to servers", ("no", "yes")),
        _OF["packing"],
    ),
)
#: Devices for which the curve has points.
DEVICES = [2**n for n in range(13)]


def figure(model, device, link, batch=1024, devices=16, way="ring", servers=4,
           packing=1e-9, per_host=8, inner=FAST, tensor=1, pipeline=1,
           chunks=8, name="cost-calculator"):
    """Return the figure for a notebook: numbers to choose, a step's time and its
    efficiency.

    `model`: one of `MODELS`. `device`: a `step.Device`, whose speed gives the
    time per example; `link`: a `Link`. `batch`: examples per device. `way`: one of
    `WAYS`; `servers` and `packing`, seconds per byte, `per_host` and `inner` as in
    `StepPlan`. `tensor`, `pipeline`, `chunks`: of a mesh, whose third axis has the
    remaining devices; lengths that do not divide the number of devices are reduced to
    common divisors. Initially the arrays are sent one by one, during the backward pass.
    `name`: its id in the page.

    Raises `ValueError` for a model or a way that the figure does not know, and for a
    number that it cannot show. Developed in the chapter *One to 4,096 devices*.
    """
    numbers = {
        "parameters": model.parameters, "arrays": model.arrays,
        "example": 1e6 * model.flops / device.flops, "overhead": 1e3 * device.overhead,
        "batch": batch, "devices": devices, "bandwidth": _bandwidth(link),
        "latency": 1e6 * link.alpha, "servers": servers, "packing": 1e9 * packing,
        "per_host": per_host, "inside": _bandwidth(inner), "nearby": 1e6 * inner.alpha,
        "tensor": tensor, "pipeline": pipeline, "chunks": chunks,
        **dict(zip(("border", "sums"), MODELS.get(model, (1, 1)))),
    }
    words = {"model": model.name, "scaling": SCALING[0], "way": way, "sent": SENT[0],
             "compression": "no"}
    rounded = {role: x if isinstance(x, int) else float(f"{x:.6g}")
               for role, x in numbers.items()}
    choice = {**rounded, **words}
    held = data(device.flops)
    return frame.figure(
        "cost_calculator", name, "Step to compute", CONTROLS, choice, held
    )


def _bandwidth(link):
    return 8e-9 / link.beta if link.beta else inf  # Gbit/s


def data(flops):
    """The script's data, for JSON.

    `models`: name -> its numbers on a device of `flops` per second. `limits`: role ->
    lowest, highest, and whether it is whole. `devices`: the points of the curve. The
    others: constants of `d2l_ext.scale.step`.
    """
    models = {
        m.name: {"parameters": m.parameters, "arrays": m.arrays,
                 "example": float(f"{1e6 * m.flops / flops:.6g}"),
                 "border": border, "sums": sums}
        for m, (border, sums) in MODELS.items()
    }
    limits = {n.role: [n.low, n.high, n.whole] for n in NUMBERS}
    return {"models": models, "limits": limits, "ways": WAYS,
            "devices": DEVICES, "backward": step.BACKWARD,
            "two_bit": step.TWO_BIT, "sent": SENT}
