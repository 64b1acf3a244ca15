"""The best time between checkpoints: formulas and simulated jobs agree."""

import d2l_ext  # noqa: F401, I001
from math import inf
from random import Random
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2l_ext.scale.interval import daly, expected_time, simulate, young

SECONDS = st.floats(0.1, 50)


def numerical_best(cost, mtbf):
    """The interval that makes `expected_time` least, of a fine grid of ratios."""
    grid = [young(cost, mtbf) * 1.002**k for k in range(-1200, 600)]
    return min(grid, key=lambda t: expected_time(1, t, cost, 0, mtbf))


@pytest.mark.parametrize("cost, bound", [(0.1, 0.003), (1, 0.005), (10, 0.02)])
def test_dalys_interval_is_the_best_of_the_complete_model(cost, bound):
    assert abs(daly(cost, 100) / numerical_best(cost, 100) - 1) < bound


def test_youngs_is_near_it_only_while_a_checkpoint_is_cheap():
    assert young(2, 100) == 20.0
    assert abs(young(0.01, 100) / daly(0.01, 100) - 1) < 0.01
    assert young(50, 100) > 1.3 * daly(50, 100)
    assert daly(200, 100) == daly(900, 100) == 100  # too expensive to write more


@given(SECONDS, SECONDS, st.floats(50, 1000))
def test_dalys_interval_beats_its_half_and_its_double(cost, restart, mtbf):
    best = daly(cost, mtbf)
    times = [expected_time(100, best * f, cost, restart, mtbf) for f in (1, 0.5, 2)]
    assert times[0] <= min(times)


@pytest.mark.parametrize("interval", [5.0, 14.0, 60.0])
def test_simulated_jobs_take_the_expected_time_on_average(interval):
    """420 s of work, a multiple of each interval; failures in restarts as well."""
    random, args = Random(1), (420, interval, 1.0, 30.0, 100.0)
    totals = [simulate(*args, random)["total"] for _ in range(4000)]
    error = stdev(totals) / len(totals) ** 0.5
    assert abs(mean(totals) - expected_time(*args)) < 4 * error


@given(st.floats(1, 100), st.floats(1, 100), SECONDS, SECONDS, st.integers(0, 999))
def test_the_time_of_a_job_is_the_sum_of_where_it_went(work, interval, cost, r, seed):
    parts = simulate(work, interval, cost, r, 500.0, Random(seed))
    total = parts.pop("total")
    assert parts.pop("failures") >= round(parts["restarts"] / r)
    assert total == pytest.approx(work + sum(parts.values()))
    assert parts["checkpoints"] >= cost


def test_without_failures_only_checkpoints_cost():
    assert simulate(100, 10, 1, 5, 1e12, Random(0))["total"] == pytest.approx(110)
    assert expected_time(100, 10, 1, 5, 1e6) == pytest.approx(110, rel=1e-3)
    assert expected_time(100, 1e6, 1, 5, 100) == inf


@pytest.mark.parametrize("function", [young, daly])
def test_a_time_that_is_none_is_named(function):
    with pytest.raises(ValueError, match="cost=0: give a time above 0"):
        function(0, 10)
