"""The bytes of weights, gradients and states on each device, by what is divided.

The script computes what `memory.bytes_held` and `bytes_sent` do. The page has the bytes
that the library's optimizers keep per parameter, from `state_bytes`.
"""

from math import prod

from d2l_ext.data_parallel import lenet
from d2l_ext.memory import STAGES, state_bytes
from d2l_ext.palette import SERIES_COLOURS, SERIES_ON_DARK

from . import frame

_lenet = [prod(shape) for shape in lenet.SHAPES]
#: Numbers of parameters, layer by layer.
NETWORKS = {
    "six layers of 128 × 128": [128 * 128] * 6,
    "LeNet": [sum(_lenet[n : n + 2]) for n in range(0, len(_lenet), 2)],
    "7.5 billion parameters": [7_500_000_000],
}
OPTIMIZERS = {"SGD": ("sgd", {}), "momentum": ("sgd", {"momentum": 0.9}),
              "Adam": ("adam", {})}
#: Bytes of a weight, and of a gradient.
NUMBERS = {"mixed precision": 2, "float32": 4}
#: Weights, gradients and states are no devices: on light pages, and on dark ones.
COLOURS = tuple(zip(SERIES_COLOURS, SERIES_ON_DARK))
CONTROLS = (
    frame.Select("network", "Network", tuple(NETWORKS)),
    frame.Select("optimizer", "Optimizer", tuple(OPTIMIZERS)),
    frame.Select("numbers", "Numbers", tuple(NUMBERS)),
    frame.Slider("devices", "Devices k", 1, 64),
    frame.Clock("Stage", unit="stage"),
)


def figure(network="six layers of 128 × 128", devices=4, optimizer="Adam",
           numbers="mixed precision", name="shard-memory"):
    """Return the figure for a notebook: a bar per device, and a clock over ZeRO's
    stages.

    `network`, `optimizer`, `numbers`: one of `NETWORKS`, `OPTIMIZERS`, `NUMBERS`.
    `devices`: k, 1 to 64. `name`: its id in the page. Raises `ValueError` for what the
    figure cannot show. Developed in the chapter *Sharded data parallelism*.
    """
    choice = {"network": network, "optimizer": optimizer, "numbers": numbers,
              "devices": devices}
    return frame.figure("shard_memory", name, "Replicas to show", CONTROLS, choice,
                        data())


def data():
    """Return the page's data, for JSON: `stages`; `networks`, name -> sizes of layers;
    `numbers`, name -> bytes; `states`: "optimizer,numbers" -> bytes per parameter;
    `colours`: pairs of weights, gradients and states.
    """
    states = {f"{name},{numbers}": _kept(*made, itemsize)
              for name, made in OPTIMIZERS.items()
              for numbers, itemsize in NUMBERS.items()}
    return {"stages": STAGES, "networks": NETWORKS, "numbers": NUMBERS,
            "states": states, "colours": COLOURS}


def _kept(optimizer, options, itemsize):
    half = itemsize == 2
    options = {**options, "multi_precision": half}
    return state_bytes(optimizer, options, "float16" if half else "float32")
