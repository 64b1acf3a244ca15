"""Three networks as the cost model sees them: bytes to exchange, work per example."""

from dataclasses import dataclass

FLOAT32 = 4  # bytes


@dataclass(frozen=True)
class Model:
    """A network: `parameters` (a count), `arrays` they lie in, `flops` per example.

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
        return FLOAT32 * self.parameters

    @property
    def flops_per_byte(self):
        """Work of an example for each byte that an exchange must move."""
        return self.flops / self.nbytes


def convolution(channels, filters, kernel, side):
    """(parameters, multiplications) of a square convolution with `side`² outputs."""
    weights = channels * filters * kernel**2
    return weights + filters, weights * side**2


def dense(inputs, outputs):
    """(parameters, multiplications) of a dense layer."""
    return inputs * outputs + outputs, inputs * outputs


def lstm(inputs, hidden, steps):
    """(parameters, multiplications) of a layer over `steps` time steps.

    Four gates, each from the input and from the layer's own output; with two biases
    per gate, as in MXNet's cell.
    """
    weights = 4 * hidden * (inputs + hidden)
    return weights + 8 * hidden, weights * steps


def model(name, layers, free=0, arrays_per_layer=2):
    """A `Model` of `layers`, pairs as above; `free`: parameters that take no product.

    Backward takes twice the multiplications of forward: one product for the gradient
    of the weights, one for that of the input. (The first layer needs no second, which
    is not taken off.)
    """
    parameters = sum(p for p, _ in layers) + free
    flops = 3 * 2 * sum(m for _, m in layers)
    arrays = arrays_per_layer * len(layers) + (free > 0)
    return Model(name, parameters, arrays, flops)


#: `d2l_ext.lenet`, for images of 28×28 pixels.
LENET = model("LeNet", [
    convolution(1, 20, 3, 26), convolution(20, 50, 5, 9), dense(800, 128),
    dense(128, 10)])  # fmt: skip

#: VGG-11 as in `trainkit.networks`, for images of 32×32 pixels.
VGG11 = model("VGG-11", [
    convolution(3, 64, 3, 32), convolution(64, 128, 3, 16),
    convolution(128, 256, 3, 8), convolution(256, 256, 3, 8),
    convolution(256, 512, 3, 4), convolution(512, 512, 3, 4),
    convolution(512, 512, 3, 2), convolution(512, 512, 3, 2),
    dense(512, 4096), dense(4096, 4096), dense(4096, 10)])  # fmt: skip

#: Two layers of 1,500 units over 35 words of 10,000: "large" in Zaremba, Sutskever and
#: Vinyals, "Recurrent Neural Network Regularization" (2014). An example is a sequence.
LSTM = model("large LSTM", [
    lstm(1500, 1500, 35), lstm(1500, 1500, 35),
    (1500 * 10_000 + 10_000, 35 * 1500 * 10_000)],
    free=1500 * 10_000, arrays_per_layer=4)  # fmt: skip

MODELS = (LENET, VGG11, LSTM)
