"""Exchanging every H-th step: what equals what, what is counted, what is refused."""

import d2l_ext  # noqa: F401, I001
from threading import Barrier, Thread

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2l_ext.kvstore.local_sgd import LocalSGD, outer_step

SHAPES = (3,), (2, 2)
RATE = 0.1


def gradient(rank, step, params):
    """Of another quadratic on each worker, another in each step."""
    rng = numpy.random.RandomState([rank, step])
    return [(1 + rank) * (p - rng.randn(*p.shape)) for p in params]


def run(num_workers, steps, local_steps, **outer):
    """Final arrays of each worker, and its `LocalSGD`; workers are threads."""
    given, barrier = [None] * num_workers, Barrier(num_workers, timeout=300)
    params = [[numpy.ones(s) for s in SHAPES] for _ in range(num_workers)]
    local = [None] * num_workers

    def worker(rank):
        def total(arrays):
            given[rank] = arrays
            barrier.wait()
            sums = [sum(each) for each in zip(*given)]
            barrier.wait()
            return sums

        own = params[rank]
        local[rank] = LocalSGD(own, total, num_workers, local_steps, **outer)
        for step in range(steps):
            for p, g in zip(own, gradient(rank, step, own)):
                p -= RATE * g
            local[rank].step()

    threads = [Thread(target=worker, args=[rank]) for rank in range(num_workers)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return params, local


def by_hand(num_workers, steps, local_steps):
    """Weights are averaged, as the definition says."""
    params = [[numpy.ones(s) for s in SHAPES] for _ in range(num_workers)]
    for step in range(steps):
        for rank, own in enumerate(params):
            for p, g in zip(own, gradient(rank, step, own)):
                p -= RATE * g
        if (step + 1) % local_steps == 0:
            means = [sum(each) / num_workers for each in zip(*params)]
            params = [[m.copy() for m in means] for _ in params]
    return params


def apart(one, two):
    return max(abs(a - b).max() for a, b in zip(one, two))


@pytest.mark.parametrize("steps, local_steps", [(20, 1), (20, 4), (21, 5), (3, 7)])
def test_without_momentum_the_workers_take_the_mean_of_their_weights(steps,
                                                                      local_steps):
    found, local = run(3, steps, local_steps)
    for own, right in zip(found, by_hand(3, steps, local_steps)):
        assert apart(own, right) < 1e-13
    assert {(one.exchanges, one.steps) for one in local} == {
        divmod(steps, local_steps)
    }


def test_all_workers_are_equal_after_an_exchange_and_not_between_two():
    found, _ = run(2, 8, 4, outer_lr=0.7, outer_mom=0.9)
    assert apart(*found) == 0
    found, _ = run(2, 9, 4, outer_lr=0.7, outer_mom=0.9)
    assert apart(*found) > 0.01


@given(st.floats(0.1, 2), st.floats(0, 0.95), st.integers(1, 6))
def test_the_outer_step_is_nesterovs_as_it_is_published(lr, mom, times):
    """Sutskever et al. 2013 look ahead; seen from there it is the step used here."""
    drifts = numpy.random.RandomState(times).randn(times, 4)
    start, velocity = numpy.zeros(4), numpy.zeros(4)
    theta, v = numpy.zeros(4), numpy.zeros(4)
    for drift in drifts:
        outer_step(start, drift, velocity, lr, mom)
        v = mom * v - lr * drift  # the drift, taken at theta + mom * v
        theta = theta + v
        numpy.testing.assert_allclose(start, theta + mom * v, atol=1e-12)


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"local_steps": 0}, "local_steps must be a whole number of at least 1, not 0"),
        ({"local_steps": 2.0}, "local_steps .* not 2.0"),
        ({"local_steps": True}, "local_steps .* not True"),
        ({"num_workers": 0}, "num_workers must be a whole number of at least 1, not 0"),
        ({"outer_lr": 0}, "outer_lr must be a positive number, not 0"),
        ({"outer_lr": float("nan")}, "outer_lr .* not nan"),
        ({"outer_mom": 1}, "outer_mom must be at least 0 and below 1, not 1"),
        ({"outer_mom": -0.1}, "outer_mom .* not -0.1"),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(wrong, says):
    with pytest.raises(ValueError, match=says):
        LocalSGD([], None, **{"num_workers": 2, "local_steps": 1, **wrong})
