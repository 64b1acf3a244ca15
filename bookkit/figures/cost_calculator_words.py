"""Says in words what a step costs, and writes its numbers.

Every function has its twin of the same name in `cost_calculator.js`.
"""

from math import floor

from .cost_calculator_state import costs
from .shapes import number


def summary(d):
    """What is computed, and the curve in numbers."""
    own = d["curves"][d["ways"].index(d["way"])]
    points = ", ".join(decimal(e) for e in own[::4])
    return (
        f"{d['model']}, {number(floor(d['parameters']))} parameters or "
        f"{digits(4e-6 * d['parameters'])} MB of gradients, {number(d['batch'])} "
        f"examples for {d['scaling']}, {digits(d['bandwidth'])} Gbit/s, "
        f"{digits(d['latency'])} µs. Exchange: {called(d, d['way'])}. Efficiency on "
        f"{', '.join(number(k) for k in d['on'][::4])} devices: {points}."
    )


def moment(d, now):
    """What the step costs, and what it would cost with each way of the exchange."""
    others = [
        f"{called(d, way)} {time(costs(d, way, d['devices'])['seconds'])}"
        for way in d["ways"]
    ]
    return (
        f"A step on {number(d['devices'])} devices takes {time(d['seconds'])}: "
        f"computing {time(d['compute'])}, exchange {time(d['moved'])}, of which "
        f"{time(d['hidden'])} behind the backward pass. {percent(d['waiting'])} of the "
        f"step is waiting. Efficiency {decimal(d['efficiency'])}, speed-up "
        f"{digits(d['speed_up'])}. With each exchange: {', '.join(others)}."
    )


def called(d, way):
    return f"{number(d['servers'])} servers" if way == "servers" else way


def whole(x):
    return floor(x + 0.5)


def digits(x):
    """Three significant digits, and all before the point: 0.123, 12.3, 1,234."""
    places = 0
    while places < 15 and 0 < x * 10**places < 100:
        places += 1
    scaled = str(whole(x * 10**places)).rjust(places + 1, "0")
    cut = len(scaled) - places
    return number(int(scaled[:cut])) + (f".{scaled[cut:]}" if places else "")


def time(seconds):
    for unit, many in (("s", 1), ("ms", 1e3)):
        if seconds * many >= 1:
            return f"{digits(seconds * many)} {unit}"
    return f"{digits(seconds * 1e6)} µs"


def decimal(x):
    """Three decimals."""
    scaled = str(whole(1000 * x)).rjust(4, "0")
    return f"{scaled[:-3]}.{scaled[-3:]}"


def percent(x):
    return f"{whole(100 * x)}%"
