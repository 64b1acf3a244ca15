"""What a step costs, from the numbers that the reader chooses.

Every function has its twin of the same name in `cost_calculator.js`. Here `costs` asks
`cost_model.step`; the twin does the computing anew, and a test compares the two.
"""

from math import floor

from d2l_ext.scale import step
from d2l_ext.scale.link import network
from d2l_ext.scale.sizes import Model

#: The words to choose from, the first of which is chosen at first.
SCALING = ("each device", "all devices")
SENT = ("in one array", "array by array")
OWN = "own numbers"


def state(data, choice):
    """The numbers of the choice, within their limits, and what follows from them."""
    d = {**choice, "ways": data["ways"], "on": data["devices"]}
    for role, (low, high, whole) in data["limits"].items():
        value = min(max(float(choice[role]), low), high)
        d[role] = floor(value) if whole else value
    d.update(costs(d, d["way"], d["devices"]))
    d["curves"] = [curve(d, way) for way in data["ways"]]
    return d


def costs(d, way, devices):
    """Seconds of a step and its parts; efficiency, speed-up, share of waiting."""
    model = Model(d["model"], d["parameters"], d["arrays"], 1e-6 * d["example"])
    device, link = step.Device(1.0, 1e-3 * d["overhead"]), _link(d)
    plan, each = _plan(d, way), d["scaling"] == SCALING[0]
    batch = d["batch"] * devices if each else d["batch"]
    compute = device.seconds(model, batch / devices)
    moved = step.communication(model, devices, link, plan) if devices > 1 else 0.0
    hidden = min(moved, step.BACKWARD * compute) if plan.overlap else 0.0
    seconds = step.seconds(model, batch, devices, device, link, plan)
    scaling = step.weak if each else step.strong
    efficiency = scaling(model, d["batch"], devices, device, link, plan)
    return {
        "compute": compute, "moved": moved, "hidden": hidden, "seconds": seconds,
        "waiting": (moved - hidden) / seconds, "efficiency": efficiency,
        "speed_up": devices * efficiency, "per_second": batch / seconds,
    }  # fmt: skip


def _link(d):
    return network(d["bandwidth"], 1e-6 * d["latency"])


def _plan(d, way):
    compressed = d["compression"] == "yes" and way == "servers"
    return step.Plan(way, d["servers"], compressed, 1e-9 * d["packing"],
                     d["overlap"] == "yes", d["sent"] == SENT[0])  # fmt: skip


def curve(d, way):
    """The efficiency on each number of devices."""
    return [costs(d, way, k)["efficiency"] for k in d["on"]]
