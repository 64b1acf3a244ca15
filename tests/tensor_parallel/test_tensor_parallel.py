"""A block divided over devices computes what it computes on one."""

import d2l_ext  # noqa: F401, I001

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import autograd, np, npx

from d2l_ext.devices import storage
from d2l_ext.data_parallel import traffic
from d2l_ext import tensor_parallel as tp
from d2l_ext.data_parallel.allreduce import allreduce, allreduce_ring, allreduce_tree
from d2l_ext.devices import try_all_devices

npx.set_np()

NAMES = ["W1", "b1", "W2", "b2"]
#: Largest difference, in units of the largest element.
TOLERANCE = {"float64": 1e-10, "float32": 1e-6}


def block(num_in, hidden, num_out, dtype="float64", seed=0):
    """Parameters whose outputs are of order one, as NumPy arrays."""
    rng = numpy.random.RandomState(seed)
    W1 = rng.randn(num_in, hidden) / num_in**0.5
    W2 = rng.randn(hidden, num_out) / hidden**0.5
    params = [W1, rng.randn(hidden), W2, rng.randn(num_out)]
    return [p.astype(dtype) for p in params]


def batch(n, num_in, num_out, dtype="float64"):
    rng = numpy.random.RandomState(1)
    return rng.randn(n, num_in).astype(dtype), rng.randn(n, num_out).astype(dtype)


def on_one_device(X, dY, params):
    """The block by MXNet's autograd: output, input gradient, parameter gradients."""
    X, *params = arrays = [np.array(x, dtype=x.dtype) for x in (X, *params)]
    for x in arrays:
        x.attach_grad()
    W1, b1, W2, b2 = params
    with autograd.record():
        Y = np.dot(npx.relu(np.dot(X, W1) + b1), W2) + b2
    Y.backward(np.array(dY, dtype=dY.dtype))
    return Y.asnumpy(), X.grad.asnumpy(), [p.grad.asnumpy() for p in params]


def on_devices(X, dY, params, devices, reduce=allreduce):
    """The same by `tensor_parallel`, the first two for each device."""
    parts = tp.split_block(params, devices)
    Xs, dYs = tp.replicate(X, devices), tp.replicate(dY, devices)
    Ys, hidden = tp.forward(Xs, parts, reduce)
    dXs, gradients = tp.backward(dYs, Xs, hidden, parts, reduce)
    numpys = [[x.asnumpy() for x in xs] for xs in (Ys, dXs)]
    return (*numpys, tp.join_block(gradients))


def assert_close(found, expected):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    bound = TOLERANCE[str(expected.dtype)] * abs(expected).max()
    assert abs(found - expected).max() <= bound


def assert_same_as_on_one_device(X, dY, params, devices, reduce=allreduce):
    Y, dX, gradients = on_one_device(X, dY, params)
    Ys, dXs, joined = on_devices(X, dY, params, devices, reduce)
    assert len(Ys) == len(dXs) == len(devices)
    for on_device, expected in ((Ys, Y), (dXs, dX)):
        for found in on_device:
            assert_close(found, expected)
    for found, expected in zip(joined, gradients):
        assert_close(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("reduce", [allreduce, allreduce_tree, allreduce_ring])
def test_output_and_every_gradient_equal_those_of_one_device(k, dtype, reduce):
    X, dY = batch(16, 24, 12, dtype)
    params = block(24, 64, 12, dtype)
    assert_same_as_on_one_device(X, dY, params, try_all_devices(k), reduce)


@settings(max_examples=40)
@given(st.data())
def test_any_widths_and_number_of_devices_give_the_same(data):
    n, num_in, num_out = (data.draw(st.integers(1, 9)) for _ in range(3))
    k = data.draw(st.integers(1, 4))
    hidden = data.draw(st.integers(k, 17))  # mostly not a multiple of k
    X, dY = batch(n, num_in, num_out)
    devices = try_all_devices(4)[::-1][:k]  # in another order
    assert_same_as_on_one_device(X, dY, block(num_in, hidden, num_out), devices)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_two_blocks_in_a_row_give_the_gradients_of_one_device(k):
    # The first block's gradients need the second's input gradient, summed.
    devices, (X, dY) = try_all_devices(k), batch(8, 12, 6)
    first, second = block(12, 20, 10, seed=2), block(10, 16, 6, seed=3)
    H, _, _ = on_one_device(X, numpy.zeros((8, 10)), first)
    _, dH, second_expected = on_one_device(H, dY, second)
    _, dX, first_expected = on_one_device(X, dH, first)

    parts = [tp.split_block(p, devices) for p in (first, second)]
    Xs, dYs = tp.replicate(X, devices), tp.replicate(dY, devices)
    Hs, hidden_1 = tp.forward(Xs, parts[0])
    _, hidden_2 = tp.forward(Hs, parts[1])
    dHs, gradients_2 = tp.backward(dYs, Hs, hidden_2, parts[1])
    dXs, gradients_1 = tp.backward(dHs, Xs, hidden_1, parts[0])
    found = [*tp.join_block(gradients_1), *tp.join_block(gradients_2)]
    for x, expected in zip(found, [*first_expected, *second_expected]):
        assert_close(x, expected)
    for x in dXs:
        assert_close(x.asnumpy(), dX)


@pytest.mark.parametrize("k", [2, 4])
def test_what_is_the_same_on_all_devices_has_the_same_bits(k):
    devices, (X, dY) = try_all_devices(k), batch(8, 12, 6, "float32")
    parts = tp.split_block(block(12, 20, 6, "float32"), devices)
    Xs, dYs = tp.replicate(X, devices), tp.replicate(dY, devices)
    Ys, hidden = tp.forward(Xs, parts)
    dXs, gradients = tp.backward(dYs, Xs, hidden, parts)
    for copies in (Ys, dXs, [g[3] for g in gradients]):
        assert len({x.asnumpy().tobytes() for x in copies}) == 1
        assert [x.ctx for x in copies] == devices


@pytest.mark.parametrize("k", [1, 2, 4])
def test_a_step_needs_two_allreduces_and_nothing_else(k):
    n, num_in, hidden, num_out = 8, 12, 20, 6
    devices, (X, dY) = try_all_devices(k), batch(n, num_in, num_out)
    parts = tp.split_block(block(num_in, hidden, num_out), devices)
    Xs, dYs = tp.replicate(X, devices), tp.replicate(dY, devices)
    with traffic.count(devices) as there:
        _, saved = tp.forward(Xs, parts)
    with traffic.count(devices) as back:
        tp.backward(dYs, Xs, saved, parts)
    assert there == traffic.expected("naive", k, n * num_out * 8, itemsize=8)
    assert back == traffic.expected("naive", k, n * num_in * 8, itemsize=8)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_weights_and_hidden_biases_shrink_as_one_over_k(k):
    params = block(16, 32, 8)
    parts = tp.split_block(params, try_all_devices(k))
    for part in parts:
        assert [p.size * k for p in part[:3]] == [p.size for p in params[:3]]
        assert part[3].size == params[3].size
    nbytes = [sum(p.asnumpy().nbytes for p in part) for part in parts]
    assert nbytes == tp.bytes_per_device(params, k)


def test_a_device_is_given_its_part_and_no_more():
    devices = try_all_devices(4)
    params = block(64, 256, 32, "float32")
    with storage.record(devices) as memory:
        parts = tp.split_block(params, devices)
    counted = tp.bytes_per_device(params, 4)
    assert list(memory.held.values()) == counted and len(parts) == 4
    assert list(memory.peak.values()) == counted  # not even for a moment


def test_uneven_widths_differ_by_one_at_most():
    devices, W = try_all_devices(4), numpy.arange(60.0).reshape(6, 10)
    columns, rows = tp.column_split(W, devices), tp.row_split(W.T, devices)
    assert [c.shape for c in columns] == [(6, 2), (6, 3), (6, 2), (6, 3)]
    assert [r.shape for r in rows] == [(2, 6), (3, 6), (2, 6), (3, 6)]
    assert (numpy.concatenate([c.asnumpy() for c in columns], axis=1) == W).all()
    assert (numpy.concatenate([r.asnumpy() for r in rows]) == W.T).all()
    assert [x.ctx for x in columns] == [x.ctx for x in rows] == devices


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numpy_and_mxnet_arrays_are_cut_alike_and_keep_their_type(dtype):
    devices, W = try_all_devices(2), numpy.arange(12).reshape(3, 4).astype(dtype)
    for source in (W, np.array(W, dtype=dtype)):
        parts = tp.column_split(source, devices)
        for part, expected in zip(parts, (W[:, :2], W[:, 2:])):
            assert part.dtype == numpy.dtype(dtype)
            assert (part.asnumpy() == expected).all()


def test_a_part_is_a_copy():
    W = np.zeros((2, 4))
    parts = tp.column_split(W, [W.ctx])
    parts[0] += 1
    assert (W.asnumpy() == 0).all()


def test_joining_undoes_splitting():
    params = block(5, 11, 3)
    for k in (1, 2, 3):
        joined = tp.join_block(tp.split_block(params, try_all_devices(k)))
        assert all((a == b).all() for a, b in zip(joined, params))


@pytest.mark.parametrize("call, message", [
    (lambda d: tp.column_split(numpy.ones((8, 3)), d),
     "3 columns cannot be split over 4 devices: use 1 to 3"),
    (lambda d: tp.row_split(numpy.ones((2, 8)), d),
     "2 rows cannot be split over 4 devices"),
    (lambda d: tp.split_block(block(9, 3, 9), d),
     "3 hidden values cannot be split over 4 devices"),
    (lambda d: tp.split_block(block(9, 3, 9), []),
     "3 hidden values cannot be split over 0 devices"),
    (lambda d: tp.split_block(block(4, 8, 4)[:3] + [numpy.ones(5)], d),
     r"\(8, 4\), \(5,\)\]: they must be \(in, hidden\)"),
    (lambda d: tp.split_block([numpy.ones((4, 9)), *block(4, 8, 4)[1:]], d),
     r"\[\(4, 9\), \(8,\), \(8, 4\), \(4,\)\]: they must be"),
])  # fmt: skip
def test_what_cannot_be_divided_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(try_all_devices(4))
