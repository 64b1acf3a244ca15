"""One array for all parameters trains as eight arrays do."""

import d2l_ext  # noqa: F401, I001  (before mxnet)
import numpy
import pytest
from mxnet import np, npx

from d2l_ext import data_parallel
from d2l_ext.data_parallel import flat, lenet, traffic
from d2l_ext.devices import try_all_devices

npx.set_np()
LR = 0.1


@pytest.fixture(params=[1, 2, 3])
def devices(request):
    return try_all_devices(request.param)


@pytest.fixture
def batch():
    rng = numpy.random.RandomState(0)
    X = np.array(rng.rand(25, 1, 28, 28), dtype="float32")
    return X, np.array(rng.randint(0, 10, 25), dtype="int32")


def train(step, replicas, batch, devices, times=5):
    for _ in range(times):
        step(*batch, replicas, devices, LR)
    return replicas


def test_five_steps_end_bit_by_bit_where_eight_arrays_end(devices, batch):
    params = lenet.init_params()
    eight = [data_parallel.get_params(params, d) for d in devices]
    one = [flat.get_flat_params(params, d) for d in devices]
    train(data_parallel.train_batch, eight, batch, devices)
    train(flat.train_batch, one, batch, devices)
    for arrays, replica in zip(eight, one):
        for a, b in zip(arrays, replica.params):
            assert (a.asnumpy() == b.asnumpy()).all()
    assert (one[0].params[0].asnumpy() != params[0].asnumpy()).any()


def test_a_step_takes_one_allreduce(batch):
    devices = try_all_devices(2)
    one = [flat.get_flat_params(lenet.init_params(), d) for d in devices]
    with traffic.count(devices) as moved:
        flat.train_batch(*batch, one, devices, LR)
    assert moved.steps == 2
    assert moved.sent[1] == one[0].values.size * 4


def test_a_parameter_is_a_view_of_the_array():
    (device,) = try_all_devices(1)
    replica = flat.get_flat_params(lenet.init_params(), device)
    replica.values[:] = 7
    assert all((p.asnumpy() == 7).all() for p in replica.params)
    assert sum(p.size for p in replica.params) == replica.values.size


def test_a_gradient_is_a_view_of_the_array(batch):
    (device,) = try_all_devices(1)
    params = lenet.init_params()
    replica = flat.get_flat_params(params, device)
    expected = lenet.gradients(*batch, data_parallel.get_params(params, device))
    found = lenet.gradients(*batch, replica.params)
    end_to_end = numpy.concatenate([g.asnumpy().ravel() for g in expected])
    assert (replica.gradients.asnumpy() == end_to_end).all()
    assert [g.shape for g in found] == [g.shape for g in expected]


def test_the_original_parameters_stay_as_they_were(devices, batch):
    params = lenet.init_params()
    before = [p.asnumpy() for p in params]
    replicas = [flat.get_flat_params(params, d) for d in devices]
    train(flat.train_batch, replicas, batch, devices, times=1)
    assert all((p.asnumpy() == b).all() for p, b in zip(params, before))


def test_parameters_of_two_dtypes_are_refused():
    (device,) = try_all_devices(1)
    params = [np.zeros(3, dtype="float32"), np.zeros(3, dtype="float64")]
    with pytest.raises(ValueError, match="float32.*float64"):
        flat.get_flat_params(params, device)
