"""A block divided over devices computes what it computes on one."""

import d2l_ext  # noqa: F401, I001

import numpy
import pytest
from held_devices import TWO, done_alone, held
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import autograd, np, npx
from recorded_devices import devices_to_record

from d2l_ext.devices import storage
from d2l_ext.data_parallel import costs, traffic
from d2l_ext import tensor_parallel as tp
from d2l_ext.data_parallel.allreduce import allreduce, allreduce_ring, allreduce_tree
from d2l_ext.devices import try_all_devices

npx.set_np()

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
def test_a_step_needs_two_allreduces_and_leaves_the_same_bits_where_all_is_the_same(k):
    devices, (X, dY) = try_all_devices(k), batch(8, 12, 6, "float32")
    parts = tp.split_block(block(12, 20, 6, "float32"), devices)
    Xs, dYs = tp.replicate(X, devices), tp.replicate(dY, devices)
    with traffic.count(devices) as there:
        Ys, hidden = tp.forward(Xs, parts)
    with traffic.count(devices) as back:
        dXs, gradients = tp.backward(dYs, Xs, hidden, parts)
    assert there == costs.expected("naive", k, Ys[0].size * 4)
    assert back == costs.expected("naive", k, dXs[0].size * 4)
    for copies in (Ys, dXs, [g[3] for g in gradients]):
        assert len({x.asnumpy().tobytes() for x in copies}) == 1
        assert [x.ctx for x in copies] == devices


@pytest.mark.parametrize("k", [1, 2, 4])
def test_a_device_is_given_its_part_and_no_more(k):
    devices, params = devices_to_record(k), block(64, 256, 32, "float32")
    k = len(devices)
    with storage.record(devices) as memory:
        parts = tp.split_block(params, devices)
    assert {(*(p.size * k for p in part[:3]), part[3].size) for part in parts} == {
        tuple(p.size for p in params)}
    counted = tp.bytes_per_device(params, k)
    assert list(memory.held.values()) == counted
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
        parts, before = tp.column_split(source, devices), source.copy()
        for part, expected in zip(parts, (W[:, :2], W[:, 2:])):
            assert part.dtype == numpy.dtype(dtype)
            assert (part.asnumpy() == expected).all()
        for copy in (*parts, *tp.row_split(source, devices)):
            copy += 1
        assert (source == before).all()


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
])
def test_what_cannot_be_divided_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(try_all_devices(4))


def test_a_device_does_its_products_while_the_other_stands_still():
    """But for the sums, it needs nothing of another; nothing waits."""
    parts = tp.split_block(block(4, 8, 4, "float32"), TWO)
    Xs, dYs = (tp.replicate(x, TWO) for x in batch(3, 4, 4, "float32"))

    def step():
        _, hidden = tp.forward(Xs, parts)
        tp.backward(dYs, Xs, hidden, parts)

    for device in TWO:
        did = done_alone(step, device, TWO)
        assert (did.count("_np_dot"), did.count("dot")) == (2, 4)
    with held(*TWO):
        step()
