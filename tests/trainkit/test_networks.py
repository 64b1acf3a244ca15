"""The networks have the promised layers, and start alike on every device."""

import d2l_ext  # noqa: F401, I001
import mxnet as mx
import numpy
import pytest
from mxnet import np

from d2l_ext.data_parallel import lenet
from trainkit import networks
from trainkit.replicas import Replicas

TWO = [mx.cpu(0), mx.cpu(1)]


def shapes(net):
    return [p.shape for p in net.collect_params().values()]


def test_lenet_has_the_layers_of_the_scratch_version():
    found = shapes(networks.build("lenet", (1, 28, 28), TWO[:1]))
    # Gluon writes a dense layer's weight as (outputs, inputs).
    assert found == [s[::-1] if len(s) == 2 else s for s in lenet.SHAPES]


def test_mlp_has_three_dense_layers():
    found = shapes(networks.build("mlp", (3, 32, 32), TWO[:1]))
    assert found == [(128, 3072), (128,), (64, 128), (64,), (10, 64), (10,)]


@pytest.mark.parametrize("name", ["lenet", "mlp"])
def test_the_start_depends_on_the_seed_alone(name):
    def start(devices, seed=0):
        params = networks.build(name, (1, 28, 28), devices, seed).collect_params()
        return [p.data(devices[-1]).asnumpy() for p in params.values()]

    first = start(TWO[:1])
    mx.random.seed(99)
    for again in (start(TWO), start(TWO[::-1])):
        assert all(numpy.array_equal(a, b) for a, b in zip(first, again))
    assert not numpy.array_equal(first[0], start(TWO[:1], seed=1)[0])


def test_only_vgg11_draws_random_numbers_in_a_step():
    assert not networks.is_random(networks.lenet())
    assert networks.is_random(networks.vgg11())


def test_vgg11_takes_small_images_and_learns_in_a_step():
    """28×28 get a margin of zeros: they end as 1×1 pixel, as those of 32×32 do."""
    net = networks.build("vgg11", (1, 28, 28), TWO[:1])
    assert shapes(net)[-6:] == [
        (4096, 512), (4096,), (4096, 4096), (4096,), (10, 4096), (10,)
    ]
    X = np.array(numpy.random.RandomState(0).rand(2, 1, 28, 28), dtype="float32")
    padded = np.zeros((2, 1, 32, 32))
    padded[:, :, 2:30, 2:30] = X
    assert numpy.array_equal(net(X).asnumpy(), net[1](padded).asnumpy())
    model = Replicas(net, TWO[:1], optimizer_params={"learning_rate": 0.01})
    before = model.params[0].data().asnumpy()
    model.train_batch(X, np.array([3, 7], dtype="int32"))
    after = model.params[0].data().asnumpy()
    assert numpy.isfinite(after).all() and not numpy.array_equal(before, after)
