"""A replayed step ends where the step that it was recorded from ends."""

import d2l_ext  # noqa: F401, I001  (before mxnet)
import numpy
import pytest
from mxnet import np, npx

from d2l_ext import data_parallel
from d2l_ext.data_parallel import lenet, replay, traffic
from d2l_ext.devices import try_all_devices

npx.set_np()
LR = 0.1


def minibatch(seed, n=25):
    rng = numpy.random.RandomState(seed)
    X = np.array(rng.rand(n, 1, 28, 28), dtype="float32")
    return X, np.array(rng.randint(0, 10, n), dtype="int32")


@pytest.mark.parametrize("k", [1, 2, 3])
def test_five_steps_end_bit_by_bit_where_the_plain_step_ends(k):
    devices, params = try_all_devices(k), lenet.init_params()
    plain = [data_parallel.get_params(params, d) for d in devices]
    plans = replay.get_plans(params, *minibatch(9), devices)
    for seed in range(5):  # another minibatch in every step
        data_parallel.train_batch(*minibatch(seed), plain, devices, LR)
        replay.train_batch(*minibatch(seed), plans, LR)
    for arrays, plan in zip(plain, plans):
        for a, b, start in zip(arrays, plan.replica.params, params):
            assert (a.asnumpy() == b.asnumpy()).all()
            assert (a.asnumpy() != start.asnumpy()).any()


def test_making_a_plan_trains_nothing_and_keeps_what_it_was_given():
    devices, params, (X, y) = try_all_devices(2), lenet.init_params(), minibatch(0)
    (plan, _) = replay.get_plans(params, X, y, devices)
    for p, given in zip(plan.replica.params, params):
        assert (p.asnumpy() == given.asnumpy()).all()
    replay.train_batch(*minibatch(1), [plan, _], LR)
    assert (X.asnumpy() == minibatch(0)[0].asnumpy()).all()
    assert (params[0].asnumpy() == lenet.init_params()[0].asnumpy()).all()


def test_a_replayed_step_takes_one_allreduce():
    devices = try_all_devices(2)
    plans = replay.get_plans(lenet.init_params(), *minibatch(0), devices)
    with traffic.count(devices) as moved:
        replay.train_batch(*minibatch(0), plans, LR)
    assert moved.steps == 2
    assert moved.sent[1] == plans[0].replica.values.size * 4


def test_a_minibatch_of_another_size_is_refused():
    plans = replay.get_plans(lenet.init_params(), *minibatch(0), try_all_devices(2))
    with pytest.raises(ValueError, match=r"24 examples, and plans for \[13, 12\]"):
        replay.train_batch(*minibatch(0, 24), plans, LR)
