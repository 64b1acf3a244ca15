"""Layers of a decoder, divided over devices: each computes what one device computes."""

import d2l_ext  # noqa: F401, I001

import numpy
import pytest
from mxnet import autograd, np, npx

from d2l_ext.data_parallel.traffic import cuts
from d2l_ext.devices import try_all_devices
from d2l_ext.tensor_parallel import divided_layers

npx.set_np()

@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_embedding_over_a_divided_vocabulary_and_its_gradient(k):
    """The sum is the rows of the table; each part has the gradient of its own rows."""
    rng, devices = numpy.random.RandomState(0), try_all_devices(k)
    whole, dY = rng.randn(10, 3), rng.randn(7, 3)
    tokens, edges = numpy.array([9, 0, 4, 4, 2, 9, 5]), cuts(10, k)
    summed, gradient = numpy.zeros((7, 3)), numpy.zeros((10, 3))
    numpy.add.at(gradient, tokens, dY)
    for device, start, stop in zip(devices, edges, edges[1:]):
        part = np.array(whole[start:stop], dtype="float64", ctx=device)
        part.attach_grad()
        ids = np.array(tokens, dtype="int32", ctx=device)
        with autograd.record():
            rows = divided_layers.embed(ids, part, start)
        rows.backward(np.array(dY, dtype="float64", ctx=device))
        summed += rows.asnumpy()
        assert abs(part.grad.asnumpy() - gradient[start:stop]).max() < 1e-12
    assert (summed == whole[tokens]).all()


@pytest.mark.parametrize("dtype, bound", [("float64", 1e-12), ("float32", 1e-6)])
def test_attention_is_the_softmax_over_earlier_positions_by_numpy(dtype, bound):
    heads, d, rng = 3, 5, numpy.random.RandomState(0)
    x = rng.randn(6, 2, heads * 3 * d).astype(dtype)
    q, k, v = (x.reshape(6, 2, heads, 3, d)[:, :, :, i] for i in range(3))
    expected = numpy.empty_like(q)
    for t in range(6):
        z = numpy.einsum("bhd,sbhd->sbh", q[t], k[: t + 1]) / d**0.5
        shares = numpy.exp(z) / numpy.exp(z).sum(0)
        expected[t] = numpy.einsum("sbh,sbhd->bhd", shares, v[: t + 1])
    expected = expected.reshape(6, 2, -1)
    ways = [divided_layers.plain] + [divided_layers.fused] * (dtype == "float32")
    for way in ways:
        found = way(np.array(x, dtype=dtype), heads).asnumpy()
        assert found.shape == expected.shape and found.dtype == dtype
        off = numpy.linalg.norm(found - expected)
        assert off <= bound * numpy.linalg.norm(expected)


def test_what_a_reduce_scatter_leaves_an_allgather_joins_to_the_sum():
    for k in (1, 2, 3, 4):
        arrays = [numpy.arange(14.0).reshape(7, 2) * 10**i for i in range(k)]
        Xs = [np.array(a, ctx=d) for a, d in zip(arrays, try_all_devices(k))]
        shares = divided_layers.reduce_scatter(Xs)
        assert sum(x.shape[0] for x in shares) == 7
        for whole, device in zip(divided_layers.allgather(shares), try_all_devices(k)):
            assert whole.ctx == device and (whole.asnumpy() == sum(arrays)).all()


def test_the_softmax_over_shards_bears_large_scores():
    scores = [[800.0, 0], [-900, 790]], [[810, 1.0], [-900, 790]]
    zs = [np.array(z, ctx=d) for z, d in zip(scores, try_all_devices(2))]
    targets = [np.array([2, 3], dtype="int32", ctx=d) for d in try_all_devices(2)]
    losses, grads = divided_layers.cross_entropy(zs, targets, [0, 2])
    expected = [numpy.log(1 + numpy.exp(-10)), numpy.log(2)]
    # 800 has few digits behind the point in float32
    assert numpy.allclose(losses[1].asnumpy(), expected, atol=1e-4)
    assert numpy.allclose(grads[1].asnumpy()[1], [0, -0.25], atol=1e-4)
