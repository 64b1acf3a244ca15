"""LARS and LAMB over devices, their warm-up, and the noise in the gradients."""

import d2l_ext  # noqa: F401, I001  (before mxnet)
import itertools

import mxnet as mx
import numpy
import pytest
from mxnet import np, npx

from d2l_ext.data_parallel import lenet
from d2l_ext.data_parallel.diagnose import blocking_calls
from d2l_ext.data_parallel.large_batch import (
    RULES,
    Replica,
    noise_and_signal,
    train_batch,
    warmed_up,
)
from d2l_ext.devices import try_all_devices

npx.set_np()
SHAPES = (6, 4), (4,), (4, 3)
every_rule = pytest.mark.parametrize("rule", RULES)


@pytest.fixture
def rng():
    return numpy.random.RandomState(0)


def arrays(rng, dtype="float32"):
    return [np.array(rng.randn(*shape), dtype=dtype) for shape in SHAPES]


def two_layers(X, params):
    return np.dot(npx.relu(np.dot(X, params[0]) + params[1]), params[2])


@every_rule
@pytest.mark.parametrize("k", [2, 3])
def test_replicas_go_where_one_device_goes(rule, k, rng):
    X = np.array(rng.rand(25, 6), dtype="float64")
    y = np.array(rng.randint(0, 3, 25), dtype="int32")
    params = arrays(rng, "float64")
    ends = []
    for devices in (try_all_devices(1), try_all_devices(k)):
        replicas = [Replica(params, d, rule, decay=0.01) for d in devices]
        for _ in range(4):
            train_batch(X, y, replicas, devices, 0.01, two_layers)
        ends.append([r.values.asnumpy() for r in replicas])
    assert all((ends[1][0] == end).all() for end in ends[1])
    start = numpy.concatenate([p.asnumpy().ravel() for p in params])
    assert abs(ends[0][0] - ends[1][0]).max() < 1e-12
    assert abs(ends[0][0] - start).max() > 1e-3


@pytest.mark.parametrize("rule, options", [
    ("sgd", {}), ("lars", {"eta": 1.0}), ("lamb", {}),
])
def test_a_layer_moves_as_with_the_optimizer_of_mxnet(rule, options, rng):
    (device,) = try_all_devices(1)
    if rule in ("sgd", "lars"):
        options["momentum"] = 0.9
    params = [p for p in arrays(rng) if len(p.shape) > 1]
    ours = Replica(params, device, rule, decay=0.01)
    theirs = mx.optimizer.create(rule, learning_rate=0.1, wd=0.01, rescale_grad=1 / 8,
                                 **options)
    update = mx.optimizer.get_updater(theirs)
    weights = [mx.nd.array(p.asnumpy()) for p in params]
    for _ in range(5):
        gradients = [rng.randn(*p.shape) for p in params]
        ours.gradients[:] = np.array(numpy.concatenate([g.ravel() for g in gradients]))
        ours.update(0.1, 8)
        for i, (w, g) in enumerate(zip(weights, gradients)):
            update(i, mx.nd.array(g), w)
    for p, mine, w in zip(params, ours.params, weights):
        far = abs(mine.asnumpy() - p.asnumpy()).max()
        assert abs(mine.asnumpy() - w.asnumpy()).max() < 1e-5 * far


@pytest.mark.parametrize("rule", ["lars", "lamb"])
@pytest.mark.parametrize("by", [1e-3, 1, 1e3])
def test_a_layer_moves_by_a_share_of_its_length_but_a_bias_does_not(rule, by, rng):
    params = arrays(rng, "float64")
    replica = Replica(params, *try_all_devices(1), rule)
    replica.gradients[:] = by * np.array(rng.randn(replica.gradients.size))
    replica.update(0.25, 1)
    share = [numpy.linalg.norm((a - b).asnumpy()) / numpy.linalg.norm(b.asnumpy())
             for a, b in zip(replica.params, params)]
    assert abs(numpy.array(share)[[0, 2]] - 0.25).max() < 1e-6
    assert abs(share[1] - 0.25) > 0.01


@every_rule
def test_zeros_move_and_stay_finite(rule):
    replica = Replica([np.zeros((2, 2))], *try_all_devices(1), rule)
    replica.update(0.1, 1)
    assert (replica.values.asnumpy() == 0).all()
    replica.gradients[:] = 1
    replica.update(0.1, 1)
    assert (replica.values.asnumpy() < 0).all()


@every_rule
def test_a_step_waits_for_nothing(rule, rng):
    devices = try_all_devices(2)
    replicas = [Replica(lenet.init_params(), d, rule) for d in devices]
    X, y = np.array(rng.rand(4, 1, 28, 28), dtype="float32"), np.array([0, 1, 2, 3])
    with blocking_calls() as waits:
        train_batch(X, y, replicas, devices, 0.1)
    assert waits == []


def test_noise_and_signal_are_right_on_average_over_all_minibatches(rng):
    examples = rng.randn(4, 3) + [1, 2, 3]  # gradients of four examples
    G = examples.mean(axis=0)
    every = [itertools.product(examples, repeat=n) for n in (2, 4)]
    means = [[numpy.mean(some, axis=0) for some in draws] for draws in every]
    small, large = (numpy.mean([g @ g for g in gs]) for gs in means)
    noise, signal = noise_and_signal(small, large, 2, 4)
    assert abs(noise - examples.var(axis=0).sum()) < 1e-12
    assert abs(signal - G @ G) < 1e-12


def test_a_step_returns_the_squared_lengths_of_its_gradients(rng):
    devices = try_all_devices(3)
    X = np.array(rng.rand(8, 1, 28, 28), dtype="float32")
    y = np.array(rng.randint(0, 10, 8), dtype="int32")
    replicas = [Replica(lenet.init_params(), d, "sgd") for d in devices]
    own, whole = train_batch(X, y, replicas, devices, 0.1)
    (one,) = try_all_devices(1)
    parts = [slice(0, 3), slice(3, 6), slice(6, 8), slice(8)]
    for found, part in zip([*own, whole], parts):
        alone = Replica(lenet.init_params(), one, "sgd")
        (right,), _ = train_batch(X[part], y[part], [alone], [one], 0.1)
        assert abs(float(found) / float(right) - 1) < 1e-4


def test_the_rate_grows_evenly_and_stays_or_falls():
    rates = [warmed_up(0.8, step, 4) for step in range(6)]
    assert numpy.allclose(rates, [0.2, 0.4, 0.6, 0.8, 0.8, 0.8])
    assert warmed_up(0.8, 0, 0) == 0.8
    falls = [warmed_up(0.8, step, 2, last=6) for step in range(6)]
    assert numpy.allclose(falls, [0.4, 0.8, 0.8, 0.6, 0.4, 0.2])


@pytest.mark.parametrize("call, message", [
    (lambda: Replica([], None, "larz"), "'larz'.*Did you mean 'lars'"),
    (lambda: Replica([], None, "lars", momentum=1), "momentum=1, decay=0.0: .*less"),
    (lambda: warmed_up(0.1, -1, 4), "step must be a whole number of at least 0"),
    (lambda: warmed_up(0.1, 6, 4, 6), "last must be a whole number of .* 7, not 6"),
    (lambda: noise_and_signal(2, 1, 8, 8), "batches of 8 and 8 examples"),
    (lambda: noise_and_signal(float("nan"), 1, 4, 8), "nan, 1 are not both finite"),
])
def test_bad_input_is_refused_with_its_values(call, message):
    with pytest.raises(ValueError, match=message):
        call()
