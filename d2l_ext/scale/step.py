"""A training step on a cluster: compute, exchange, and what of it overlaps."""

from dataclasses import dataclass, replace

from . import exchange
from .link import at_least_zero, whole

#: Share of a step's computing that is backward: two products of three.
BACKWARD = 2 / 3
#: Two bits for each float32.
TWO_BIT = 1 / 16


@dataclass(frozen=True)
class Device:
    """`flops` that it does per second, and `overhead`, seconds of any step at least."""

    flops: float
    overhead: float = 0.0

    def seconds(self, model, examples):
        """Seconds to compute a step of `model` for `examples` examples."""
        return self.overhead + model.flops * examples / self.flops


@dataclass(frozen=True)
class Plan:
    """How a step is divided: all that `seconds` needs besides model and machines.

    `way`: one of `exchange.WAYS`. `servers`: for `'servers'`. `compressed`: two-bit
    gradients on the way to the servers, each byte of which costs `packing` seconds.
    `overlap`: gradients travel while earlier layers go backward. `flat`: they lie in
    one array, so the exchange is one message and not one for each array.

    Raises `ValueError` for compressed gradients that no server would unpack.
    """

    way: str = "ring"
    servers: int = 1
    compressed: bool = False
    packing: float = 0.0
    overlap: bool = False
    flat: bool = False

    def __post_init__(self):
        if self.compressed and self.way != "servers":
            raise ValueError(
                f"compressed gradients by way={self.way!r}: only way='servers' has them"
            )


def seconds(model, batch, devices, device, link, plan=Plan()):
    """Seconds of a step of `batch` examples in all, divided over `devices` devices.

        seconds(VGG11, 1024, 8, Device(flops=5e12), network(10))

    `model`: a `sizes.Model`. `device`: a `Device`; `link`: a `Link`. On one device
    nothing is exchanged. A batch that does not divide counts as if it did.

    With overlap, the exchange hides behind the backward pass, two thirds of the
    computing; the gradients of the first layers come last, and never hide, which
    this leaves out: it is the best case.

    Raises `ValueError` for a batch below 0 and counts that are not whole.
    Developed in the chapter *A cost model*.
    """
    at_least_zero("batch", batch)
    whole("devices", devices)
    compute = device.seconds(model, batch / devices)
    if devices == 1:
        return compute
    moved = communication(model, devices, link, plan)
    hidden = min(moved, BACKWARD * compute) if plan.overlap else 0.0
    return compute + moved - hidden


def communication(model, devices, link, plan):
    """Seconds of the exchange of `model`'s gradients, with the packing if any."""
    pushed = TWO_BIT if plan.compressed else 1.0
    packing = plan.packing * model.nbytes if plan.compressed else 0.0
    arrays = 1 if plan.flat else model.arrays
    return packing + exchange.seconds(
        plan.way, devices, model.nbytes, link, plan.servers, arrays, pushed
    )


def strong(model, batch, devices, device, link, plan=Plan()):
    """Efficiency with the same `batch` for all: T(1) / (k·T(k)). 1 is perfect."""
    one = seconds(model, batch, 1, device, link, plan)
    return one / (devices * seconds(model, batch, devices, device, link, plan))


def weak(model, batch, devices, device, link, plan=Plan()):
    """Efficiency with `batch` examples for *each* device: T(1) / T(k)."""
    one = seconds(model, batch, 1, device, link, plan)
    return one / seconds(model, batch * devices, devices, device, link, plan)


def servers_needed(model, batch, devices, device, link, plan, share=0.05):
    """The fewest servers with which an exchange adds `share` to a step at the most.

    Returns None when as many servers as devices do not suffice: beyond that, the
    workers' own links are the bottleneck.
    """
    target = (1 + share) * device.seconds(model, batch / devices)
    low, high = 1, devices

    def enough(s):
        with_s = replace(plan, way="servers", servers=s)
        return seconds(model, batch, devices, device, link, with_s) <= target

    if not enough(high):
        return None
    while low < high:  # more servers are never slower
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def compression_pays_below(packing, carried=1.0):
    """Bandwidth in Gbit/s below which two-bit compression makes a step shorter.

    `packing`: seconds for each byte of the gradients, by sender and receiver.
    `carried`: how many times N crosses the busiest link on the way to the servers,
    max(1, workers / servers). Saved: 15/16 of these bytes; inf if packing is free.
    """
    at_least_zero("packing", packing)
    saved = (1 - TWO_BIT) * carried
    return 8e-9 * saved / packing if packing else float("inf")
