"""A training step on a cluster, in closed form, and how many steps there are.

A step computes and exchanges, and some of that overlaps. An exchange follows the α–β
model: what runs at the same time on links of their own costs once.
"""

from dataclasses import dataclass, replace

from ..data_parallel import traffic
from .link import at_least_zero, whole

#: Share of a step's computing that is backward: two products of three.
BACKWARD = 2 / 3
#: Two bits for each float32.
TWO_BIT = 1 / 16
#: The ways of `seconds`: the three allreduces, and a parameter server.
WAYS = (*traffic.ALGORITHMS, "servers")


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

    `way`: one of `WAYS`. `servers`: for `'servers'`. `compressed`: two-bit
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
    return packing + exchange_seconds(
        plan.way, devices, model.nbytes, link, plan.servers, arrays, pushed
    )


def exchange_seconds(way, devices, nbytes, link, servers=1, arrays=1, pushed=1.0):
    """Seconds of one exchange of `nbytes` per device on `devices` devices.

    `way`: one of `WAYS`. `link`: the `Link` of every device and every server.
    `arrays`: the gradients come as so many arrays, each with messages of its own.
    For `'servers'`: how many `servers` there are, and in `pushed` how much of the
    bytes is pushed, 1/16 with two-bit compression; what is pulled is never compressed.

        naive    2(k − 1)·(a·α + N·β)
        tree     2⌈log₂ k⌉·(a·α + N·β)
        ring     2(k − 1)·(a·α + N/k·β)
        servers  2·a·α + (1 + pushed)·max(1, k/s)·N·β

    A server's link carries N/s bytes of each of k workers, a worker's link N bytes:
    the servers are the bottleneck while there are fewer than workers. One device
    exchanges nothing, but with servers it still pushes and pulls.

    Raises `ValueError` for an unknown way, and counts below 1.
    Sources: Thakur, Rabenseifner and Gropp (2005), Patarasuk and Yuan (2009), Li et
    al., "Scaling Distributed Machine Learning with the Parameter Server" (2014).
    Developed in the chapter *A cost model*.
    """
    whole("devices", devices)
    whole("servers", servers)
    whole("arrays", arrays)
    if way == "servers":
        carried = (1 + pushed) * nbytes * max(1, devices / servers)
        return link.seconds(carried, messages=2 * arrays)
    if way not in WAYS:
        raise ValueError(f"unknown way {way!r}: choose one of {', '.join(WAYS)}")
    # All arrays at once would be one message: the rest of the arrays cost α only.
    return traffic.seconds(way, devices, nbytes, arrays * link.alpha, link.beta)


def server_seconds(workers, servers, nbytes, link, pushed=1.0):
    """Seconds for which a server's link is busy in a step, and those of a worker's."""
    each = (1 + pushed) * nbytes * link.beta
    return workers / servers * each, each


def layerwise_seconds(block, devices, rows, inputs, outputs, link, way="naive",
                      itemsize=4):  # fmt: skip
    """Seconds of a forward and backward pass of a block that k `devices` share.

    `block`: seconds of the whole block on one device; each of k does 1/k of it. Then
    come two allreduces, of `rows` × `outputs` numbers forward and `rows` × `inputs`
    backward. The parameters do not occur: none of their gradients is sent.

        block/k + allreduce(k, rows·outputs·4) + allreduce(k, rows·inputs·4)

    Source: Shoeybi et al., "Megatron-LM" (2019). Developed in *A cost model*.
    """
    sums = [
        traffic.seconds(way, devices, rows * width * itemsize, link.alpha, link.beta)
        for width in (outputs, inputs)
    ]
    return block / devices + sum(sums)


def pipeline_seconds(forward, backward, chunks):
    """Seconds of a GPipe step of `chunks` micro-batches, if messages take no time.

    `forward`, `backward`: seconds of each stage for one micro-batch, two lists.

        Σᵢ (fᵢ + bᵢ) + (m − 1)·(max f + max b)

    Equal stages: (m + p − 1)·(f + b), of which (p − 1)/(m + p − 1) is the bubble. The
    slowest stage counts m times, all others once: imbalance costs more than depth.
    Raises `ValueError` for lists of different lengths. Source of the bubble: Huang et
    al., "GPipe" (2019). Developed in the chapter *A cost model*.
    """
    check_stages(forward, backward)
    whole("chunks", chunks)
    slowest = max(forward) + max(backward)
    return sum(forward) + sum(backward) + (chunks - 1) * slowest


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


def steps_to_loss(batch, critical, least):
    """Steps to a given loss with batches of `batch` examples: S = S_min·(1 + B_crit/B).

    `critical` B_crit: the critical batch size, at which a run takes twice the fewest
    steps and twice the fewest examples. `least` S_min: the steps of a huge batch.
    With B far below B_crit twice the batch means half of the steps; far above, it
    means nothing.

    Source: McCandlish, Kaplan and Amodei, "An Empirical Model of Large-Batch Training"
    (2018). Shallue et al., "Measuring the Effects of Data Parallelism on Neural
    Network Training" (2019), saw the same three regions in all of their networks.
    Developed in the chapter *A cost model*.
    """
    if not batch > 0:
        raise ValueError(f"a batch has more than {batch} examples")
    at_least_zero("critical", critical)
    return least * (1 + critical / batch)


def examples_to_loss(batch, critical, least):
    """Examples that are seen until then: B·S."""
    return batch * steps_to_loss(batch, critical, least)


def seconds_to_loss(step_seconds, batch, critical, least):
    """Seconds of training: what counts, and what neither step nor epoch tells."""
    return step_seconds * steps_to_loss(batch, critical, least)


def check_stages(forward, backward):
    """Raise `ValueError` unless each stage has its two times."""
    if len(forward) != len(backward) or not forward:
        raise ValueError(
            f"{len(forward)} forward times and {len(backward)} backward times: give "
            "both for each stage, and one stage at least"
        )
