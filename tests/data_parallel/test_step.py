"""The governing property: k devices do what one device does."""

import d2l_ext  # noqa: F401, I001
import numpy
import pytest
from mxnet import np, npx

from d2l_ext import data_parallel
from d2l_ext.data_parallel import lenet, step
from d2l_ext.devices import try_all_devices

npx.set_np()


@pytest.fixture(scope="module")
def batch():
    rng = numpy.random.RandomState(0)
    X = rng.rand(48, 1, 28, 28).astype("float32")
    return np.array(X), np.array(rng.randint(0, 10, 48), dtype="int32")


def replicas(k, dtype="float32"):
    params = [p.astype(dtype) for p in lenet.init_params(scale=0.1)]
    return [data_parallel.get_params(params, d) for d in try_all_devices(k)]


def gradients_after_a_step(batch, k, dtype="float64", **options):
    X, y = batch
    device_params, devices = replicas(k, dtype), try_all_devices(k)
    X = X.astype(dtype)
    data_parallel.train_batch(X, y, device_params, devices, 0.0, **options)
    return [[p.grad.asnumpy() for p in params] for params in device_params]


def test_get_params_copies_to_the_device_and_attaches_zero_gradients():
    params, device = lenet.init_params(), try_all_devices(2)[1]
    copies = data_parallel.get_params(params, device)
    for p, copy in zip(params, copies):
        assert (copy.asnumpy() == p.asnumpy()).all()
        assert copy.ctx == copy.grad.ctx == device
        assert (copy.grad.asnumpy() == 0).all()


@pytest.mark.parametrize("k, loads", [
    (2, None), (3, None), (4, None), (2, [3, 1]),
])
def test_the_summed_gradient_is_the_full_batch_gradient(batch, k, loads):
    """In float64, so that rounding cannot hide a wrong sum, nor excuse one."""
    (whole,) = gradients_after_a_step(batch, 1)
    for replica in gradients_after_a_step(batch, k, work_load_list=loads):
        for summed, full in zip(replica, whole):
            assert summed.dtype == full.dtype == "float64"
            assert (abs(summed - full) <= 1e-9 * abs(full)).all()


@pytest.mark.parametrize("k", [1, 2, 4])
def test_in_float32_any_number_of_devices_is_equally_near_to_the_truth(batch, k):
    # One device is no better: it sums longer rows, and rounding grows with them.
    (truth,) = gradients_after_a_step(batch, 1)
    for replica in gradients_after_a_step(batch, k, "float32"):
        for rounded, exact in zip(replica, truth):
            assert numpy.abs(rounded - exact).max() < 1e-4 * numpy.abs(exact).max()


@pytest.mark.parametrize("k", [2, 4])
def test_replicas_are_bit_identical_after_ten_steps(batch, k):
    device_params, devices = replicas(k), try_all_devices(k)
    for _ in range(10):
        data_parallel.train_batch(*batch, device_params, devices, 0.1)
    first = [p.asnumpy() for p in device_params[0]]
    assert numpy.isfinite(first[0]).all()
    for params in device_params[1:]:
        for p, expected in zip(params, first):
            assert (p.asnumpy() == expected).all()


@pytest.mark.parametrize("k", [1, 4])
def test_a_step_divides_by_the_size_of_the_full_batch(batch, k):
    X, y = batch
    own = replicas(k, "float64")
    before = [p.asnumpy() for p in own[-1]]
    data_parallel.train_batch(X.astype("float64"), y, own, try_all_devices(k), 0.5)
    for p, old in zip(own[-1], before):
        moved = -0.5 * p.grad.asnumpy() / X.shape[0]
        assert numpy.allclose(p.asnumpy(), old + moved, rtol=1e-9, atol=1e-12)
        assert abs(moved).max() > 1e-6


def test_the_clock_waits_for_every_step_and_stands_while_it_evaluates(monkeypatch):
    """A second for each step, when it is waited for; 100 for an evaluation."""
    now, queued = [0.0], []

    def wait():
        now[0] += len(queued)
        queued.clear()

    def evaluate(*_):
        now[0] += 100.0
        return 0.5

    monkeypatch.setattr(step, "train_batch", lambda *_: queued.append(1))
    monkeypatch.setattr(step, "evaluate", evaluate)
    monkeypatch.setattr(step, "perf_counter", lambda: now[0])
    monkeypatch.setattr(npx, "waitall", wait)
    three = [(numpy.zeros(4), numpy.zeros(4))] * 3
    history = data_parallel.train(2, 4, 0.1, num_epochs=2, data=(three, three))
    assert (history.seconds, history.steps) == ([3.0, 3.0], [3, 3])
    assert history.accuracy == [0.5, 0.5]
    assert history.devices == try_all_devices(2)


def test_train_reports_a_share_and_leaves_the_initial_parameters_alone(batch):
    data, params = ([batch], [batch]), lenet.init_params()
    before = [p.asnumpy() for p in params]
    history = data_parallel.train(2, 48, 0.5, num_epochs=1, data=data, params=params)
    assert all((p.asnumpy() == old).all() for p, old in zip(params, before))
    assert 0 <= history.accuracy[0] <= 1


def test_train_refuses_a_list_of_the_wrong_length():
    with pytest.raises(ValueError, match="num_gpus=2, but 1 devices"):
        data_parallel.train(2, 48, 0.1, devices=try_all_devices(1))
