"""The best time between checkpoints: formulas and simulated jobs agree."""

import d2l_ext  # noqa: F401, I001
from math import exp, inf
from random import Random
from statistics import mean, stdev

import pytest

from d2l_ext.scale import failures
from d2l_ext.scale.failures import daly, expected_seconds, young


def numerical_best(cost, mtbf):
    """The interval that makes `expected` least, of a fine grid of ratios."""
    grid = [young(cost, mtbf) * 1.002**k for k in range(-1200, 600)]
    return min(grid, key=lambda t: expected_seconds(1, t, cost, 0, mtbf))


# ---- formulas


def test_the_best_interval_of_young_loses_as_much_to_writing_as_to_failures():
    write, mtbf = 10, 50_000
    best = young(write, mtbf)
    assert best == 1000
    assert write / best == best / 2 / mtbf
    assert young(0, 100) == 0


@pytest.mark.parametrize(
    "cost, mtbf, bound",
    [(0.1, 100, 0.003), (1, 100, 0.005), (10, 100, 0.02), (30, 1000, 0.01)],
)
def test_dalys_interval_is_the_best_of_the_complete_model(cost, mtbf, bound):
    assert abs(daly(cost, mtbf) / numerical_best(cost, mtbf) - 1) < bound


def test_dalys_interval_is_that_of_its_formula():
    # sqrt(2 · 2 · 100) is 20, and the square root of the ratio 2 / (2 · 100) is 0.1.
    assert daly(2, 100) == pytest.approx(20 * (1 + 0.1 / 3 + 0.01 / 9) - 2)


def test_youngs_is_near_it_only_while_a_checkpoint_is_cheap():
    assert daly(1, 1e9) == pytest.approx(young(1, 1e9), rel=1e-4)
    assert abs(young(0.01, 100) / daly(0.01, 100) - 1) < 0.01
    assert young(50, 100) > 1.3 * daly(50, 100)
    assert abs(young(30, 1000) / numerical_best(30, 1000) - 1) > 0.05
    assert daly(200, 100) == daly(900, 100) == 100  # too expensive to write more


def test_an_expected_time_is_that_of_the_formula_and_infinite_beyond_all_numbers():
    e = 50 * exp(3 / 50) * (exp((10 + 2) / 50) - 1) * 100 / 10
    assert expected_seconds(100, 10, 2, 3, 50) == pytest.approx(e, rel=1e-9)
    assert expected_seconds(100, 1e6, 1, 5, 100) == inf


def test_ten_times_the_devices_fail_ten_times_as_often():
    assert failures.cluster_mtbf(1000, 10) == 100


@pytest.mark.parametrize("asked", [
    young, daly, lambda write, mtbf: expected_seconds(9, 9, write, 1, mtbf),
])
def test_failures_without_time_between_them_and_negative_writes_are_refused(asked):
    with pytest.raises(ValueError, match="between failures must be above 0, not 0"):
        asked(1, 0)
    with pytest.raises(ValueError, match="time to write a checkpoint"):
        asked(-1, 100)


@pytest.mark.parametrize("asked", [expected_seconds, failures.simulate])
def test_an_interval_without_work_is_refused(asked):
    with pytest.raises(ValueError, match="must be above 0 seconds, not 0"):
        asked(100, 0, 1, 5, 100)


# ---- jobs that are lived through


def test_without_failures_ten_checkpoints_of_a_second_make_100_seconds_110():
    assert failures.simulate(100, 10, 1, 5, []).seconds == pytest.approx(110)
    assert expected_seconds(100, 10, 1, 5, inf) == pytest.approx(110)
    assert expected_seconds(100, 10, 1, 5, 1e12) == pytest.approx(110)
    assert expected_seconds(100, 10, 1, 5, 1e6) == pytest.approx(110, rel=1e-3)


@pytest.mark.parametrize("interval", [1e12, inf])
def test_an_interval_longer_than_the_work_leaves_the_work_to_be_done(interval):
    assert failures.simulate(100, interval, 1, 5, []) == (101, 0)
    assert failures.simulate(100, interval, 1, 5, [50]) == (50 + 5 + 101, 1)
    assert expected_seconds(100, interval, 1, 5, 1000) == inf


def test_a_rounding_error_is_no_work_that_needs_a_checkpoint():
    assert sum([0.1] * 8) < 0.8
    assert failures.simulate(0.8, 0.1, 30, 0, []).seconds == pytest.approx(0.8 + 8 * 30)


@pytest.mark.parametrize("work, write, restart, times, seconds", [
    # 0–10 work, 10–11 written, 11–17 lost, 17–20 restart, 20–30, 30–31 written
    (20, 1, 3, [17], 31),
    # A failure while restarting begins the restart again.
    (10, 1, 3, [5, 6], 6 + 3 + 11),
    # A failure while writing loses what was being written.
    (10, 2, 0, [11], 23),
    # One in the moment in which a checkpoint is complete costs the restart alone.
    (20, 1, 3, [11], 11 + 3 + 11),
])
def test_a_failure_costs_what_was_not_saved_and_the_restart(
    work, write, restart, times, seconds
):
    found = failures.simulate(work, 10, write, restart, times)
    assert found == (seconds, len(times))


@pytest.mark.parametrize("interval", [5.0, 14.0, 60.0])
def test_simulated_jobs_take_the_expected_time_on_average(interval):
    """420 s of work, a multiple of each interval; failures in restarts as well."""
    random, args, mtbf = Random(1), (420, interval, 1.0, 30.0), 100.0
    jobs = [failures.simulate(*args, failures.at_random(mtbf, random)).seconds
            for _ in range(4000)]
    error = stdev(jobs) / len(jobs) ** 0.5
    assert abs(mean(jobs) - expected_seconds(*args, mtbf)) < 4 * error
