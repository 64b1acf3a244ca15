"""One array, buckets, a replayed record: each step trains as the plain one does."""

import d2l_ext  # noqa: F401, I001  (before mxnet)
from functools import partial

import numpy
import pytest
from held_devices import done_alone, held, order_on
from mxnet import cpu, np, npx

from d2l_ext import data_parallel
from d2l_ext.data_parallel import flat, lenet, overlap, step, traffic
from d2l_ext.devices import try_all_devices

npx.set_np()
LR = 0.1
#: Bytes of a bucket: every parameter on its own, a few buckets, one array.
LIMITS = [1, 110_000, 10**9]
WAYS = ["one array", "replayed", *LIMITS]


def minibatch(seed, n=25):
    rng = numpy.random.RandomState(seed)
    X = np.array(rng.rand(n, 1, 28, 28), dtype="float32")
    return X, np.array(rng.randint(0, 10, n), dtype="int32")


def made(way, params, devices):
    """A step as a function of a minibatch, and the parameters on each device."""
    if way == "replayed":
        plans = flat.record_steps(params, *minibatch(9), devices)
        own = [plan.replica.params for plan in plans]
        return lambda X, y: flat.replay_batch(X, y, plans, LR), own
    if way == "one array":
        whole = [flat.get_flat_params(params, d) for d in devices]
        own = [replica.params for replica in whole]
        return lambda X, y: flat.train_batch(X, y, whole, devices, LR), own
    own = [data_parallel.get_params(params, d) for d in devices]
    if way == "plain":
        return lambda X, y: data_parallel.train_batch(X, y, own, devices, LR), own
    buckets = [overlap.attach_buckets(replica, way) for replica in own]
    return lambda X, y: overlap.train_batch(X, y, buckets, devices, LR), own


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_five_steps_end_bit_by_bit_where_the_plain_step_ends(k, way):
    devices, params = try_all_devices(k), lenet.init_params()
    start = [p.asnumpy() for p in params]
    step, theirs = made("plain", params, devices)
    own_step, ours = made(way, params, devices)
    assert all((p.asnumpy() == b).all() for r in ours for p, b in zip(r, start))
    for seed in range(5):  # another minibatch in every step
        step(*minibatch(seed))
        own_step(*minibatch(seed))
    for arrays, replica in zip(theirs, ours):
        for a, b, before in zip(arrays, replica, start):
            assert (a.asnumpy() == b.asnumpy()).all()
            assert (a.asnumpy() != before).any()
    assert all((p.asnumpy() == before).all() for p, before in zip(params, start))


@pytest.mark.parametrize("way, messages", zip(WAYS, [1, 1, 8, 3, 1]))
def test_a_step_sends_the_same_bytes_in_two_rounds_for_each_message(way, messages):
    devices = try_all_devices(2)
    train, _ = made(way, lenet.init_params(), devices)
    with traffic.count(devices) as moved:
        train(*minibatch(0))
    size = sum(numpy.prod(shape) for shape in lenet.SHAPES)
    assert (moved.sent, moved.steps) == ([4 * size] * 2, 2 * messages)


@pytest.mark.parametrize("way", ["plain", *WAYS])
def test_a_step_is_asked_for_while_the_devices_stand_still(way):
    devices, (X, y) = try_all_devices(2), minibatch(0)
    train, _ = made(way, lenet.init_params(), devices)
    with held(*devices):
        train(X, y)


@pytest.mark.parametrize("way", ["plain", *WAYS])
def test_but_for_the_exchange_a_device_needs_nothing_of_another(way, monkeypatch):
    for module in (step, flat, overlap):
        monkeypatch.setattr(module, "allreduce", lambda data: None)
    # The minibatch comes from a third device: a copy is the work of its source.
    devices, batch = try_all_devices(2), [a.as_in_ctx(cpu(2)) for a in minibatch(0)]
    train, _ = made(way, lenet.init_params(), devices)
    in_all = order_on(devices, lambda: train(*batch))
    for device, operators in zip(devices, in_all):
        alone = done_alone(lambda: train(*batch), device, devices)
        assert sorted(alone) == sorted(operators) and len(alone) > 5


def test_one_array_asks_the_engine_for_fewer_operators_and_a_record_for_still_fewer():
    devices, batch, asked = try_all_devices(2), minibatch(0), []
    for way in ("plain", "one array", "replayed"):
        train, _ = made(way, lenet.init_params(), devices)
        lanes = order_on(devices, lambda train=train: train(*batch))
        asked.append(sum(map(len, lanes)))
    assert asked[0] > 2 * asked[1] > 2 * asked[2]


def test_a_parameter_is_a_view_of_the_array():
    replica = flat.get_flat_params(lenet.init_params(), *try_all_devices(1))
    replica.values[:] = 7
    assert all((p.asnumpy() == 7).all() for p in replica.params)
    assert sum(p.size for p in replica.params) == replica.values.size


@pytest.mark.parametrize("way", ["one array", *LIMITS])
def test_a_gradient_is_a_view_of_the_array_or_of_its_bucket(way):
    (device,), params = try_all_devices(1), lenet.init_params()
    replica = flat.get_flat_params(params, device)
    params, arrays = replica.params, [replica]
    if way != "one array":
        arrays = overlap.attach_buckets(params, way)
    lenet.gradients(*minibatch(0), params)
    for own in arrays:
        ends = numpy.concatenate([p.grad.asnumpy().ravel() for p in own.params])
        assert abs(ends).sum() > 0 and (own.gradients.asnumpy() == ends).all()


@pytest.mark.parametrize("make", [
    lambda params: flat.get_flat_params(params, *try_all_devices(1)),
    partial(overlap.attach_buckets, limit=100),
], ids=["one array", "buckets"])
def test_parameters_of_two_dtypes_are_refused(make):
    params = [np.zeros(3, dtype="float32"), np.zeros(3, dtype="float64")]
    with pytest.raises(ValueError, match="float32.*float64"):
        make(params)


def test_a_recorded_step_keeps_its_first_minibatch_and_refuses_another_size():
    X, y = minibatch(0)
    plans = flat.record_steps(lenet.init_params(), X, y, try_all_devices(2))
    flat.replay_batch(*minibatch(1), plans, LR)
    assert (X.asnumpy() == minibatch(0)[0].asnumpy()).all()
    told = r"{} examples with {} labels do not fit steps recorded for \[13, 12\]: rec"
    with pytest.raises(ValueError, match=told.format(24, 24)):
        flat.replay_batch(*minibatch(0, 24), plans, LR)
    with pytest.raises(ValueError, match=told.format(25, 40)):
        flat.replay_batch(X, minibatch(0, 40)[1], plans, LR)
