"""Exchanging every H-th step: what equals what, what is counted, what is refused."""

import d2l_ext  # noqa: F401, I001
from threading import Barrier, Thread

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pslaunch as launch
from d2l_ext.kvstore import ps_log
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


def shifted(kv, shifts, local_steps):
    """A worker whose every step subtracts a fixed array; the weights at the end."""
    from mxnet import np

    from d2l_ext.kvstore.dist_train import finish, share
    from d2l_ext.kvstore.local_sgd import LocalSGD, sum_over

    params = [np.full(shift.shape[1:], 1.0 + kv.rank) for shift in shifts[0]]
    share(kv, [params])
    local = LocalSGD(params, sum_over(kv), kv.num_workers, local_steps, 0.7, 0.9)
    for step in range(len(shifts[0][0])):
        for p, shift in zip(params, shifts[kv.rank]):
            p -= np.array(shift[step])
        local.step()
    finish(kv)
    return params


@pytest.mark.parametrize("local_steps", [1, 4])
def test_a_job_moves_the_bytes_of_an_exchange_only_when_it_exchanges(local_steps):
    rng = numpy.random.RandomState(0)
    shifts = [[rng.randn(8, *s).astype("float32") for s in SHAPES] for _ in range(2)]
    job = launch.call_job(shifted, shifts, local_steps, verbose=2, deadline=600)
    right, velocity = [numpy.ones(s) for s in SHAPES], [0, 0]
    for i, (a, b) in enumerate(zip(*shifts)):
        for drift in (a + b).reshape(-1, local_steps, *SHAPES[i]).sum(axis=1) / 2:
            velocity[i] = 0.9 * velocity[i] + drift
            right[i] -= 0.7 * (drift + 0.9 * velocity[i])
    for own in job.results:
        assert apart(own, right) < 1e-5
    log = ps_log.messages(job.output("worker", 1))  # rank 0 puts in the first weights
    up = sum(m.values for m in log if m.kind == "push" and m.sent)
    assert up == 8 // local_steps * 4 * (3 + 4)
