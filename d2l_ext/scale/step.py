"""A training step on a cluster, in closed form, and the number of steps.

A step computes and exchanges, with some overlap. An exchange follows the α–β model, a
latency and a time per byte; messages at the same time on different links count once.
"""

from dataclasses import dataclass

from ..checks import at_least_zero, known_name, whole_number
from ..data_parallel import costs
from ..meshes import hierarchy

#: Backward's share of a step's computing: two products of three.
BACKWARD = 2 / 3
#: Two bits per float32.
TWO_BIT = 1 / 16
#: The ways of `seconds`: allreduces, and a parameter server.
WAYS = (*costs.names(), "servers")


@dataclass(frozen=True)
class Link:
    """A message of n bytes takes `alpha` + n·`beta` seconds.

    `alpha`: latency, seconds. `beta`: seconds per byte, so the bandwidth is 1/β.
    Raises `ValueError` unless both are numbers of at least 0.
    Source: Hockney, "The Communication Challenge for MPP" (1994).
    Developed in the chapter *Fitting a cost model*.
    """

    alpha: float
    beta: float

    def __post_init__(self):
        at_least_zero("alpha", self.alpha)
        at_least_zero("beta", self.beta)

    def seconds(self, nbytes, messages=1):
        """Return the seconds of `messages` in sequence, with `nbytes` in total."""
        return messages * self.alpha + nbytes * self.beta

    @property
    def half(self):
        """The bytes at which a message gets half of the bandwidth: α/β."""
        return self.alpha / self.beta if self.beta else float("inf")


def network(gbit_per_second, latency=50e-6):
    """Return the `Link` of a network with this bandwidth; `latency` in seconds.

    Raises `ValueError` for a bandwidth that is not above 0.
    """
    if not gbit_per_second > 0:
        raise ValueError(f"a network needs a bandwidth above 0, not {gbit_per_second}")
    return Link(latency, 8 / (gbit_per_second * 1e9))


@dataclass(frozen=True)
class Model:
    """A network: its number of `parameters`, of `arrays`, and `flops` per example.

    `flops`: floating-point operations of a training step for one example, forward
    and backward; a multiplication with its addition counts as two.
    """

    name: str
    parameters: int
    arrays: int
    flops: float

    @property
    def nbytes(self):
        """Bytes of the gradients, in float32."""
        return 4 * self.parameters

    @property
    def flops_per_byte(self):
        """Operations per example and byte that an exchange must move."""
        return self.flops / self.nbytes


@dataclass(frozen=True)
class Device:
    """`flops` per second, and `overhead`, further seconds of every step."""

    flops: float
    overhead: float = 0.0

    def seconds(self, model, examples):
        """Return the seconds to compute a step of `model` for `examples` examples."""
        return self.overhead + model.flops * examples / self.flops


@dataclass(frozen=True)
class StepPlan:
    """How a step is divided: the remaining arguments of `seconds`.

    `way`: one of `WAYS`, or `'hierarchy'`, for hosts of `per_host` devices each with
    `inner` links among them. `servers`: for `'servers'`. `compressed`: two-bit
    gradients on the way to the servers; packing costs `packing` seconds per byte.
    `overlap`: gradients travel while earlier layers go backward. `flat`: they lie in
    one array, so the exchange is one message instead of one per array.

    Raises `ValueError` for compressed gradients without servers to unpack them, and for
    a flat array with overlap: it is complete only after the backward pass.
    """

    way: str = "ring"
    servers: int = 1
    compressed: bool = False
    packing: float = 0.0
    overlap: bool = False
    flat: bool = False
    per_host: int = 1
    inner: Link = None

    def __post_init__(self):
        if self.compressed and self.way != "servers":
            raise ValueError(
                f"compressed=True needs way='servers', not way={self.way!r}"
            )
        if self.overlap and self.flat:
            raise ValueError(
                "flat=True and overlap=True: one array of all gradients waits for the "
                "last of them, so nothing can overlap; choose one of the two"
            )


def seconds(model, batch, devices, device, link, plan=StepPlan()):
    """Return the seconds of a step of `batch` examples in total, divided over `devices`
    devices.

        seconds(VGG11, 1024, 8, Device(flops=5e12), network(10))

    `model`: a `Model`; `device`: a `Device`; `link`: a `Link`. On one device
    nothing is exchanged. A batch that does not divide counts as if it did.

    Raises `ValueError` for a batch below 0 and counts that are not whole numbers; on
    several devices also for an unknown way, for several hosts that are not all full,
    and for a missing `inner`. Developed in the chapter *One to 4,096 devices*.
    """
    return sum(parts(model, batch, devices, device, link, plan))


def parts(model, batch, devices, device, link, plan=StepPlan()):
    """Return the parts of a step's seconds: overhead, computing, waiting for gradients.

    With overlap, gradients travel during the backward pass, two thirds of the
    computing. All `a` arrays count as equally large, and the last is never hidden:
    (1 − 1/a)·min(exchange, ⅔·computing) is hidden. Raises as `seconds` does.
    """
    at_least_zero("batch", batch)
    whole_number("devices", devices)
    computing = model.flops * (batch / devices) / device.flops
    moved = communication(model, devices, link, plan) if devices > 1 else 0.0
    share = 1 - 1 / model.arrays if plan.overlap else 0.0
    hidden = share * min(moved, BACKWARD * computing)
    return device.overhead, computing, moved - hidden


def communication(model, devices, link, plan):
    """Return the seconds to exchange `model`'s gradients, packed if compressed."""
    pushed = TWO_BIT if plan.compressed else 1.0
    packing = plan.packing * model.nbytes if plan.compressed else 0.0
    arrays = 1 if plan.flat else model.arrays
    if plan.way == "hierarchy":
        return _in_hosts(devices, model.nbytes, link, plan, arrays)
    return packing + exchange_seconds(
        plan.way, devices, model.nbytes, link, plan.servers, arrays, pushed
    )


def _in_hosts(devices, nbytes, link, plan, arrays):
    whole_number("per_host", plan.per_host)
    hosts, rest = divmod(devices, plan.per_host)
    if plan.inner is None or (hosts and rest):
        raise ValueError(
            f"{devices} devices, {plan.per_host} per host, inner={plan.inner}: fill "
            "every host, and give the Link between its devices as inner"
        )
    ends = [Link(arrays * x.alpha, x.beta) for x in (plan.inner, link)]
    return hierarchy.seconds(max(1, hosts), min(devices, plan.per_host), nbytes, *ends)


def exchange_seconds(way, devices, nbytes, link, servers=1, arrays=1, pushed=1.0):
    """Return the seconds of one exchange of `nbytes` per device on `devices` devices.

    `way`: one of `WAYS`. `link`: the `Link` of every device and every server.
    `arrays`: the number of arrays, each with its own messages. For `'servers'`: the
    number of `servers`, and in `pushed` the share of the bytes that is pushed, 1/16
    with two-bit compression; pulled bytes are never compressed.

        servers  2·a·α + (1 + pushed)·max(1, k/s)·N·β
        others   as `costs.seconds` says, with a·α for the α of a message

    A server's link carries N/s bytes of each of k workers, a worker's link N bytes:
    the servers are the bottleneck if they are fewer than the workers. One device
    exchanges nothing, but with servers it still pushes and pulls.

    Raises `ValueError` for an unknown way, and counts below 1.
    Sources: Thakur, Rabenseifner and Gropp (2005), Patarasuk and Yuan (2009), Li et
    al., "Scaling Distributed Machine Learning with the Parameter Server" (2014).
    Developed in the chapter *One to 4,096 devices*.
    """
    whole_number("devices", devices)
    whole_number("servers", servers)
    whole_number("arrays", arrays)
    if way == "servers":
        carried = (1 + pushed) * nbytes * max(1, devices / servers)
        return link.seconds(carried, messages=2 * arrays)
    known_name("way", way, WAYS)
    # One message for all arrays pays α once; every further array adds α only.
    return costs.seconds(way, devices, nbytes, arrays * link.alpha, link.beta)


def pipeline_seconds(forward, backward, chunks):
    """Return the seconds of a GPipe step of `chunks` micro-batches with instant
    messages.

    `forward`, `backward`: seconds of each stage for one micro-batch, two lists.

        Σᵢ (fᵢ + bᵢ) + (m − 1)·(max f + max b)

    Equal stages: (m + p − 1)·(f + b), of which (p − 1)/(m + p − 1) is the bubble. The
    slowest stage counts m times, the others once: imbalance costs more than depth.
    Raises `ValueError` for no stages, lists of different lengths, and `chunks` below 1.
    Source of the bubble: Huang et al., "GPipe" (2019). Developed in the chapter
    *Simulating a cluster*.
    """
    check_stages(forward, backward)
    whole_number("chunks", chunks)
    slowest = max(forward) + max(backward)
    return sum(forward) + sum(backward) + (chunks - 1) * slowest


def mesh_seconds(computing, sizes, chunks, sent, rounds, links):
    """Return the seconds of a step on a mesh with the axes pipeline, data and tensor.

    `computing`: seconds that a device computes. `sizes`: the lengths p, d, t by axis.
    `chunks`: m micro-batches. `sent`, `rounds`: bytes of the busiest device and its
    messages, by axis, from `meshes.decoder`. `links`: by axis, a `Link`.

        (m + p − 1)/m·(computing + tensor) + 2(p − 1)·border + data

    Sums over the tensor axis come between the products, so the bubble contains them,
    too; of the pipeline's messages only those of the first micro-batch forward and of
    the last one backward are not hidden: p − 1 borders each way. Gradients are summed
    at the end. Raises `ValueError` for `chunks` below 1. Developed in the chapter
    *Data × tensor × pipeline*.
    """
    whole_number("chunks", chunks)
    seconds = {a: links[a].seconds(sent[a], rounds[a]) for a in sizes}
    p, border = sizes["pipeline"], seconds["pipeline"] / max(1, rounds["pipeline"])
    steady = (chunks + p - 1) / chunks * (computing + seconds["tensor"])
    return steady + 2 * (p - 1) * border + seconds["data"]


def strong(model, batch, devices, device, link, plan=StepPlan()):
    """Return the efficiency T(1) / (k·T(k)), same `batch` for all; T per example."""
    one = seconds(model, batch, 1, device, link, plan)
    return one / (devices * seconds(model, batch, devices, device, link, plan))


def weak(model, batch, devices, device, link, plan=StepPlan()):
    """Return the efficiency as in `strong`, with `batch` examples *per* device."""
    one = seconds(model, batch, 1, device, link, plan)
    return one / seconds(model, batch * devices, devices, device, link, plan)


def compression_pays_below(packing, carried=1.0):
    """Return the bandwidth in Gbit/s below which two-bit compression makes a step
    shorter.

    `packing`: seconds per byte of the gradients, at sender and receiver together.
    `carried`: how often N crosses the busiest link on the way to the servers,
    max(1, workers / servers). Compression saves 15/16 of these bytes. Returns inf if
    packing is free; raises `ValueError` for a negative `packing`.
    """
    at_least_zero("packing", packing)
    saved = (1 - TWO_BIT) * carried
    return 8e-9 * saved / packing if packing else float("inf")


def steps_to_loss(batch, critical, least):
    """Return the steps to a given loss with batches of `batch` examples: S = S_min·(1 +
    B_crit/B).

    `critical` B_crit: the critical batch size, at which a run takes twice the fewest
    steps and twice the fewest examples. `least` S_min: the steps of a huge batch.
    Raises `ValueError` unless `batch` is above 0 and `critical` at least 0.
    Source: McCandlish, Kaplan and Amodei, "An Empirical Model of Large-Batch Training"
    (2018). Developed in the chapter *One to 4,096 devices*.
    """
    if not batch > 0:
        raise ValueError(f"batch must be above 0, not {batch}")
    at_least_zero("critical", critical)
    return least * (1 + critical / batch)


def check_stages(forward, backward):
    """Raise `ValueError` unless each stage has its two times."""
    if len(forward) != len(backward) or not forward:
        raise ValueError(
            f"{len(forward)} forward times and {len(backward)} backward times: give "
            "both for each stage, and at least one stage"
        )


# ---- Three networks in the cost model ----


def convolution_layer(channels, filters, kernel, side):
    """Return (parameters, multiplications) of a convolution with `side`² outputs."""
    weights = channels * filters * kernel**2
    return weights + filters, weights * side**2


def dense_layer(inputs, outputs):
    """Return (parameters, multiplications) of a dense layer."""
    return inputs * outputs + outputs, inputs * outputs


def lstm_layer(inputs, hidden, steps):
    """Return (parameters, multiplications) of a layer over `steps` time steps.

    Four gates, each from the input and from the layer's own output; with two biases
    per gate, as in MXNet's cell.
    """
    weights = 4 * hidden * (inputs + hidden)
    return weights + 8 * hidden, weights * steps


def model_of(name, layers, free=0, arrays=None):
    """Return a `Model` of `layers`, pairs as above; `free`: parameters without a
    product.

    `arrays`: the number of parameter arrays; default two per layer.

    Backward takes twice the multiplications of forward: one product for the gradient
    of the weights, one for that of the input. (The first layer's second product, which
    is not needed, is counted as well.)
    """
    parameters = sum(p for p, _ in layers) + free
    flops = 3 * 2 * sum(m for _, m in layers)
    return Model(name, parameters, arrays or 2 * len(layers), flops)


#: `d2l_ext.lenet`, for images of 28×28 pixels.
LENET = model_of("LeNet", [
    convolution_layer(1, 20, 3, 26), convolution_layer(20, 50, 5, 9),
    dense_layer(800, 128), dense_layer(128, 10)])

#: VGG-11 as in `trainkit.networks`, for images of 32×32 pixels.
VGG11 = model_of("VGG-11", [
    convolution_layer(3, 64, 3, 32), convolution_layer(64, 128, 3, 16),
    convolution_layer(128, 256, 3, 8), convolution_layer(256, 256, 3, 8),
    convolution_layer(256, 512, 3, 4), convolution_layer(512, 512, 3, 4),
    convolution_layer(512, 512, 3, 2), convolution_layer(512, 512, 3, 2),
    dense_layer(512, 4096), dense_layer(4096, 4096), dense_layer(4096, 10)])

#: Two layers of 1,500 units over 35 words of 10,000: "large" in Zaremba, Sutskever and
#: Vinyals, "Recurrent Neural Network Regularization" (2014). An example is a sequence.
LSTM = model_of("large LSTM", [
    lstm_layer(1500, 1500, 35), lstm_layer(1500, 1500, 35),
    (1500 * 10_000 + 10_000, 35 * 1500 * 10_000)],
    free=1500 * 10_000, arrays=4 + 4 + 2 + 1)

MODELS = (LENET, VGG11, LSTM)
