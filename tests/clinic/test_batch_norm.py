"""Batch normalization over shards is that of one device, forward and backward."""

import d2l_ext  # noqa: F401, I001
import numpy
import pytest
from mxnet import autograd, np, npx

from d2l_ext.clinic.batch_norm import backward, sync_batch_norm
from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices

BARS = {"float64": 1e-12, "float32": 1e-6}
UNEVEN = (9, 1, 5, 3)
C = 6


def case(k, dtype, tail=(), offset=0.0):
    """Inputs and outer gradients of k shards, in NumPy, with gamma and beta."""
    rng = numpy.random.RandomState(k)
    Xs = [(offset + rng.randn(n, C, *tail)).astype(dtype) for n in UNEVEN[:k]]
    dYs = [rng.randn(*X.shape).astype(dtype) for X in Xs]
    return Xs, dYs, rng.rand(C).astype(dtype) + 1, rng.randn(C).astype(dtype)


def run(Xs, dYs, gamma, beta, momentum=0.9):
    """Outputs, gradients and running statistics from the library, in NumPy."""
    devices, dtype = try_all_devices(len(Xs)), gamma.dtype
    put = lambda x, d: np.array(x, dtype=dtype, ctx=d)
    gammas, betas = ([put(x, d) for d in devices] for x in (gamma, beta))
    running = ([put(numpy.zeros(C), d) for d in devices],
               [put(numpy.ones(C), d) for d in devices])
    Ys, kept = sync_batch_norm([put(X, d) for X, d in zip(Xs, devices)], gammas, betas,
                               running, momentum)
    dXs, dgammas, dbetas = backward([put(dY, d) for dY, d in zip(dYs, devices)], kept)
    whole = [numpy.concatenate([x.asnumpy() for x in xs]) for xs in (Ys, dXs)]
    return whole, [[x.asnumpy() for x in xs] for xs in (dgammas, dbetas, *running)]


def near(found, expected, bar):
    assert abs(found - expected).max() <= bar * max(1, abs(expected).max())


@pytest.mark.parametrize("dtype", BARS)
@pytest.mark.parametrize("tail", [(), (4, 3)])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_uneven_shards_give_one_devices_result(k, tail, dtype):
    """Outputs, gradients and running statistics."""
    Xs, dYs, gamma, beta = case(k, dtype, tail)
    (Y, dX), sums = run(Xs, dYs, gamma, beta)
    (Y1, dX1), sums1 = run([numpy.concatenate(Xs)], [numpy.concatenate(dYs)], gamma,
                           beta)
    near(Y, Y1, BARS[dtype])
    near(dX, dX1, BARS[dtype])
    for found, (expected,) in zip(sums, sums1):
        for x in found:
            near(x, expected, BARS[dtype])
            assert (x == found[0]).all()  # the same bits on all devices


@pytest.mark.parametrize("k", [1, 3])
def test_the_result_is_that_of_mxnets_operator_and_its_gradient(k):
    Xs, dYs, gamma, beta = case(k, "float64", (4, 3))
    arrays = [np.array(x, dtype="float64")
              for x in (numpy.concatenate(Xs), gamma, beta)]
    running = [np.zeros(C, dtype="float64"), np.ones(C, dtype="float64")]
    for x in arrays:
        x.attach_grad()
    with autograd.record():
        Y = npx.batch_norm(*arrays, *running, eps=1e-5, momentum=0.9, fix_gamma=False)
    Y.backward(np.array(numpy.concatenate(dYs), dtype="float64"))
    (found, dX), (dgammas, dbetas, means, variances) = run(Xs, dYs, gamma, beta)
    near(found, Y.asnumpy(), 1e-12)
    near(dX, arrays[0].grad.asnumpy(), 1e-12)
    near(dgammas[0], arrays[1].grad.asnumpy(), 1e-12)
    near(dbetas[0], arrays[2].grad.asnumpy(), 1e-12)
    near(means[0], running[0].asnumpy(), 1e-7)  # the operator has a float32 momentum
    near(variances[0], running[1].asnumpy(), 1e-7)


def test_a_mean_far_from_zero_costs_no_digits():
    """Sums of squares would leave nothing of a variance of 1 beside a mean of 4000."""
    Xs, dYs, gamma, beta = case(4, "float32", offset=4000.0)
    (Y, _), _ = run(Xs, dYs, gamma, beta)
    whole = numpy.concatenate(Xs).astype("float64")
    right = (whole - whole.mean(0)) / numpy.sqrt(whole.var(0) + 1e-5) * gamma + beta
    near(Y, right, 1e-3)  # the mean itself has an ulp of 2e-4


def test_the_bytes_are_two_small_exchanges():
    """2 C + 1 numbers to the other device, and 2 C of the gradients."""
    devices = try_all_devices(2)
    Xs = [np.ones((n, C), ctx=d) * n for n, d in zip((2, 3), devices)]
    ones = [np.ones(C, ctx=d) for d in devices]
    with traffic.count(devices) as moved:
        _, kept = sync_batch_norm(Xs, ones, ones)
    assert moved.sent == [4 * (2 * C + 1)] * 2
    with traffic.count(devices) as moved:
        backward(Xs, kept)
    assert moved.sent == [4 * 2 * C] * 2


def test_what_does_not_fit_is_refused_with_the_numbers():
    X, gamma = np.ones((2, 3)), np.ones(3)
    with pytest.raises(ValueError, match="2 inputs, 1 gammas and 1 betas"):
        sync_batch_norm([X, X], [gamma], [gamma])
    with pytest.raises(ValueError, match=r"with \[3, 4\] channels"):
        sync_batch_norm([X], [np.ones(4)], [gamma])
