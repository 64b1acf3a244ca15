"""The study of the cost model: rows by eye, constants found again, cases that run."""

import d2l_ext  # noqa: F401, I001
import numpy
import pytest
from mxnet import np, npx

from benchmarks.scale import cases, study, workloads
from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices

npx.set_np()


def test_a_table_is_read_between_its_points_and_beyond():
    table = {10: 1.0, 20: 3.0, 40: 3.0}
    found = [cases.interpolate(x, table) for x in (5, 10, 15, 30, 50)]
    assert found == [0, 1, 2, 3, 3]


def test_two_tasks_fit_on_two_cores_and_three_crowd():
    assert [cases.crowd(k, 2) for k in (1, 2, 3, 4)] == [1, 1, 1.5, 2]


def test_rows_by_eye():
    assert cases.reduce_row("naive", 3, 10, cores=2) == (1, 4, 40)
    assert cases.reduce_row("tree", 4, 10, cores=2) == (1, 4, 40)
    assert cases.reduce_row("ring", 4, 10, cores=2) == (1, 6, 6 * 2.5 * 2)
    assert cases.store_row(3, 10) == (1, 10, 30)
    assert cases.dist_row(3, 8, 10) == (1, 24, 10, 30)
    assert cases.reduce_row("tree", 8, 10, cores=2) == (1, 6, 2 * (2 + 1 + 1) * 10)
    assert cases.step_row(4, 0.5, cores=2) == (1.0, 1)
    assert cases.stage_row(2, 64, 4) == (4, 8, 512)


@pytest.mark.parametrize("way", workloads.REDUCE)
@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 8])
def test_on_one_core_an_allreduce_costs_all_the_bytes_that_it_really_sends(way, k):
    devices = try_all_devices(k)
    data = [np.ones(k * 6, ctx=device) for device in devices]
    with traffic.count(devices) as moved:
        workloads.REDUCE[way](data)
    row = cases.reduce_row(way, k, data[0].size * 4, cores=1)
    assert row == (1, moved.steps, sum(moved.sent))


CONSTANTS = {
    "naive": (1e-4, 1e-4, 3e-10), "tree": (1e-4, 1e-4, 3e-10),
    "ring": (1e-4, 2e-4, 4e-10), "local": (1e-4, 0.0, 3e-10),
    "device": (1e-4, 1e-11, 3e-10), "step": (1.05, 4e-3),
    "stage": (1e-3, 3e-4, 1.8e-5), "block": (1e-3, 1e-5, 1.7e-7),
    "dist": (4e-4, 1e-4, 1e-10, 1.4e-9), "dist compressed": (4e-4, 1e-4, 2e-10, 2e-9),
    "dist lenet": (1.2, 1.1),
}


def made_up():
    """A machine whose constants are known."""
    known = cases.Machine(2, CONSTANTS)
    known.gradient = {n: 1e-3 + 4e-4 * n for n in (16, 32, 96, 160, 256)}
    return known


def test_a_machine_that_follows_the_model_is_predicted_exactly():
    truth = made_up()
    found = cases.calibrate({c: truth.seconds(c) for c in study.FITTED}, cores=2)
    assert max(map(abs, found.residuals.values())) < 1e-9
    for case in study.UNSEEN:
        assert found.seconds(case) == pytest.approx(truth.seconds(case), rel=1e-9)


def test_noise_of_two_percent_moves_no_prediction_by_more_than_eight():
    truth, rng = made_up(), numpy.random.RandomState(0)
    noisy = {c: truth.seconds(c) * rng.normal(1, 0.02) for c in study.FITTED}
    found = cases.calibrate(noisy, cores=2)
    worst = max(abs(found.seconds(c) / truth.seconds(c) - 1) for c in study.UNSEEN)
    assert worst < 0.08


def test_no_case_is_both_fitted_and_predicted():
    assert not set(study.FITTED) & set(study.UNSEEN)
    assert len(set(study.UNSEEN)) == len(study.UNSEEN) >= 12


def test_what_follows_from_other_cases_is_not_fitted():
    with pytest.raises(ValueError, match="follows from other cases"):
        cases.calibrate({("layerwise", 2, 64, 2048): 1.0}, cores=2)


def test_a_kind_that_was_not_fitted_is_named():
    with pytest.raises(ValueError, match="'ring' was not fitted: there is nothing"):
        cases.Machine(2).seconds(("ring", 2, 10))


def test_every_case_without_a_job_runs_and_takes_time():
    small = [("naive", 2, 4000), ("ring", 3, 4000), ("local", 2, 4000),
             ("gradient", 4), ("step", "tree", 2, 4), ("stage", 1, 4, 2),
             ("pipeline", (1, 1), 4, 2), ("block", 4, 8), ("layerwise", 2, 4, 8)]
    found = study.measure(small, rounds=1)
    assert list(found) == small


def test_jobs_take_turns_and_all_their_steps_count(monkeypatch):
    ran = []

    def job(group, steps):
        ran.append(group)
        return {case: [len(ran)] * steps for case in group}

    monkeypatch.setattr(study, "_job", job)
    one, two = ("dist", 1, 1, 8, 8000), ("dist", 2, 1, 8, 8000)
    assert study.measure([one, two], steps=3, passes=2) == {one: 2, two: 3}
    assert ran == [[one], [two]] * 2  # one in jobs 1 and 3, two in 2 and 4


def test_what_follows_from_other_cases_by_eye():
    known = cases.Machine(2, gradient={0: 0.0, 100: 100.0}, constants={
        "block": (1, 0.5, 0.25), "naive": (10, 0, 0), "stage": (1, 0, 0),
        "dist": (5, 0, 0, 0), "dist lenet": (2, 3)})
    assert known.seconds(("layerwise", 2, 4, 8)) == (1 + 0.5 * 4 + 0.25 * 4 * 4) + 20
    assert known.seconds(("dist lenet", 4, 1, 40)) == 2 * (10 * 2) + 3 * 5
    assert known.seconds(("pipeline", (1, 1), 4, 3)) == pytest.approx(2 + 2)
