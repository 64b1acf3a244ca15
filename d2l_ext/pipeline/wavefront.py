"""The wavefront: the device that works on each time step, planned and observed."""

import re
from collections import namedtuple

#: A layer's recorded work on one time step, from the start of its first matrix product
#: to the end of its last, in milliseconds.
Cell = namedtuple("Cell", "layer step kind device start end")
PRODUCT = re.compile(
    r"Op:(?:_backward_)?FullyConnected, Name=(\S+)\n(?:.*\n)*?\s*__ctx_group__=(\S+)"
)
IN_LAYER = re.compile(r"l(\d+)_t(\d+)_[ih]2h\w*?(_backward)?")


def schedule(k, num_steps):
    """Return the plan: a list of (device, step) per slot, for `k` devices in a row.

    A device takes a step when the device before it has passed it on.

    k = 3, 4 steps     slot   0  1  2  3  4  5
                   device 0   0  1  2  3
                   device 1      0  1  2  3
                   device 2         0  1  2  3

    Follows `clock_cycles` of torchgpipe, with time steps for micro-batches.
    Developed in the chapter *The LSTM as a pipeline*.
    """
    return [
        [(i, slot - i) for i in range(k) if 0 <= slot - i < num_steps]
        for slot in range(k + num_steps - 1)
    ]


def bound(k, num_steps):
    """Return the speed-up that `k` equal devices can reach: k·T of work in T + k − 1
    slots.

    2 devices    2·T/(T + 1)       1 without time steps to overlap, 2 for many
    """
    return k * num_steps / (num_steps + k - 1)


def products(pipeline):
    """Return the names of the matrix products of each device, in the order in which
    they run.

    An executor gives all products of a device one scratch buffer, so they run in the
    order of the graph. Returns {device: list of names}, named as in a `Timeline`.
    """
    order = {}
    for name, group in PRODUCT.findall(pipeline.executor.debug_str()):
        device = pipeline.group2ctx[group]
        lane = f"{device.device_type}/{device.device_id}"
        order.setdefault(lane, []).append(name)
    return order


def recorded_cells(trace, pipeline):
    """Return the work of the layers in a recorded training step: a list of `Cell`.

    `trace`: a `Timeline` of one `forward_backward` of `pipeline`. The n-th product on a
    device is the n-th of `products`. Raises `ValueError` if their numbers differ.
    """
    events = {}
    for lane, names in products(pipeline).items():
        ran = [e for e in trace.of(lane) if e.name.endswith("FullyConnected")]
        if len(ran) != len(names):
            raise ValueError(
                f"{len(ran)} matrix products were recorded on {lane}, and a training "
                f"step has {len(names)}: record exactly one, of this pipeline"
            )
        for name, event in zip(names, ran):
            found = IN_LAYER.fullmatch(name)
            if found:
                layer, step, back = found.groups()
                key = int(layer), int(step), "backward" if back else "forward", lane
                events.setdefault(key, []).append(event)
    return [Cell(*key, ran[0].start, ran[-1].end) for key, ran in events.items()]
