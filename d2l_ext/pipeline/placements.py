"""Placements: for each layer of a network, in order, the number of its device.

`(0, 0, 1)` puts two layers on device 0 and the third on device 1. Plain Python: the
costs may come from a measurement (`layer_costs`), a data sheet or a guess.
"""

from itertools import product


def all_placements(n, k, contiguous=True):
    """Every placement of `n` layers on `k` devices: a sorted list of tuples.

    `contiguous`: only those in which device numbers never fall, so that a device
    holds consecutive layers; some devices may hold none. Otherwise all kⁿ, less
    those that only exchange the names of devices: a device is used only after all
    with lower numbers. Developed in the chapter *Where to cut*.
    """
    everything = product(range(k), repeat=n)
    if contiguous:
        return [p for p in everything if list(p) == sorted(p)]
    return [p for p in everything if _opens_in_order(p)]


def _opens_in_order(placement):
    return all(d <= max(placement[:i], default=-1) + 1 for i, d in enumerate(placement))


def device_times(placement, times, k=None, crossing=None):
    """Time that each device works in one step under a placement: a list of k numbers.

    `times`: for each layer its time, or a row with its time on each device, if they
    are unequal. `crossing`: for each layer the time that its output costs *each* of
    two devices when the next layer is on the other, default 0: one receives the
    output, the other its gradient. The last layer's is not used. `k`: default the
    highest number in the placement plus one.

    Raises `ValueError` for what `partition.balance` refuses too, and for a placement
    without exactly one device below `k` for each layer.
    Developed in the chapter *Where to cut*.
    """
    k = k or max(placement, default=0) + 1
    table, crossing = checked(times, k, crossing)
    if len(placement) != len(table) or not set(placement) <= set(range(k)):
        raise ValueError(
            f"the placement {placement} has not one device below {k} for each of "
            f"{len(table)} layers"
        )
    totals = [0] * k
    for device, row in zip(placement, table):
        totals[device] += row[device]
    for cost, here, there in zip(crossing, placement, placement[1:]):
        if here != there:
            totals[here] += cost
            totals[there] += cost
    return totals


def checked(times, k, crossing):
    """`times` as rows with a column per device, `crossing` as a list; or an error."""
    if not isinstance(k, int) or k < 1:
        raise ValueError(f"a placement needs a whole number of devices, not k={k!r}")
    table = [list(t) if hasattr(t, "__iter__") else [t] * k for t in times]
    if not table:
        raise ValueError("there are no layers to place: give a time for each")
    for i, row in enumerate(table):
        check_length(f"times of layer {i}", row, k, "devices")
        check_numbers(f"the time of layer {i} on device", row)
    crossing = [0] * len(table) if crossing is None else list(crossing)
    check_length("crossing costs", crossing, len(table), "layers")
    check_numbers("the crossing cost of layer", crossing)
    return table, crossing


def check_length(what, values, n, of):
    """Raise `ValueError` unless there are `n` values."""
    if len(values) != n:
        raise ValueError(f"{len(values)} {what}, but {n} {of}: give one for each")


def check_numbers(what, values, infinite=False):
    """Raise `ValueError` for a negative number, for NaN, and for an infinite one."""
    for i, value in enumerate(values):
        if not (0 <= value < float("inf") or infinite and value == float("inf")):
            raise ValueError(f"{what} {i} is {value}: it must be a number from 0")
