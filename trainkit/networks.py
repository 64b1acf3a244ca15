"""Networks for image classification, as Gluon blocks."""

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn

npx.set_np()


def lenet():
    """Return LeNet of *Dive into Deep Learning*: as in `d2l_ext.lenet`, in Gluon."""
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(20, kernel_size=3, activation="relu"),
        nn.AvgPool2D(pool_size=2, strides=2),
        nn.Conv2D(50, kernel_size=5, activation="relu"),
        nn.AvgPool2D(pool_size=2, strides=2),
        nn.Dense(128, activation="relu"),
        nn.Dense(10),
    )
    return net


def mlp():
    """Return three dense layers, 128-64-10: MXNet's `mlp` for image classification."""
    net = nn.HybridSequential()
    net.add(
        nn.Dense(128, activation="relu"), nn.Dense(64, activation="relu"), nn.Dense(10)
    )
    return net


def vgg11():
    """Return VGG-11 of MXNet's model zoo, for images of 32×32 pixels; 28×28 are padded.

    The zoo's network is made for 224×224 pixels. Its five poolings halve each side,
    so 32×32 pixels end as 1×1 with 512 channels, and smaller images vanish.
    The two dense layers keep their 4,096 units: 28 million parameters.
    Source: Simonyan and Zisserman, "Very Deep Convolutional Networks for
    Large-Scale Image Recognition", 2015.
    """
    net = nn.HybridSequential()
    net.add(_PadTo32(), gluon.model_zoo.vision.vgg11(classes=10))
    return net


class _PadTo32(nn.HybridBlock):
    """Pad images smaller than 32×32 with zeros."""

    def __init__(self):
        super().__init__()
        self.margin = 0

    def fit_to(self, side):
        self.margin = max(32 - side, 0)

    def hybrid_forward(self, F, x):
        before, after = self.margin // 2, self.margin - self.margin // 2
        return F.np.pad(x, ((0, 0), (0, 0), (before, after), (before, after)))


NETWORKS = {"lenet": lenet, "mlp": mlp, "vgg11": vgg11}


def build(name, image_shape, devices, seed=0):
    """Build one of `NETWORKS`, initialized on all `devices` and hybridized.

    `image_shape`: (channels, height, width). `seed`: for the initial weights, which are
    the same on every device and for every list of devices.

    Weights follow Xavier's distribution; for `vgg11`, the model zoo's.
    """
    net = NETWORKS[name]()
    if isinstance(net[0], _PadTo32):
        net[0].fit_to(min(image_shape[1:]))
    mx.random.seed(seed)
    net.initialize(mx.init.Xavier(), ctx=devices)
    # Infers the layers' shapes. For prediction oneDNN would reorder the weights, which
    # a distributed kvstore refuses to send.
    with autograd.train_mode():
        net(np.zeros((1, *image_shape), ctx=devices[0]))
    # One plan of operators and memory for all steps of a shape.
    net.hybridize(static_alloc=True, static_shape=True)
    return net


def is_random(net):
    """Return whether `net` draws random numbers in training, that is, has dropout."""
    found = []
    net.apply(lambda block: found.append(isinstance(block, nn.Dropout)))
    return any(found)
