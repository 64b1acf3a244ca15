"""The formulas of the cost model: by eye, by their limits, and against the networks."""

import d2l_ext  # noqa: F401, I001
from dataclasses import replace
from math import inf, prod

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import gluon, np, npx

from d2l_ext.data_parallel import lenet, traffic
from trainkit import networks
from benchmarks.scale import cases, study, workloads
from d2l_ext.scale import fit, step
from d2l_ext.scale.step import LENET, LSTM, MODELS, VGG11, Link, network
from d2l_ext.devices import try_all_devices

npx.set_np()
quick = settings(max_examples=60)
GPU = step.Device(flops=5e12, overhead=1e-4)
amounts = st.floats(1e-9, 1e-2)
counts = st.integers(1, 40)


# ---- links and fits


def test_a_gigabit_link_moves_125_megabytes_per_second():
    link = network(1, latency=0.5)
    assert (link.beta, network(10).beta) == (8e-9, pytest.approx(8e-10))
    assert link.seconds(125_000_000) == pytest.approx(1.5)
    # At its half, it spends as long on latency as on bytes.
    assert link.seconds(link.half) == 2 * link.alpha


@pytest.mark.parametrize("make", [
    lambda: Link(-1, 0), lambda: Link(0, float("nan")), lambda: network(0),
])  # fmt: skip
def test_a_link_of_impossible_numbers_is_refused(make):
    with pytest.raises(ValueError, match="must be a number from 0|bandwidth above 0"):
        make()


@quick
@given(amounts, st.floats(1e-12, 1e-8))
def test_alpha_and_beta_come_back_from_exact_times(alpha, beta):
    sizes_, link = [0, 10**4, 10**6, 10**8], Link(alpha, beta)
    found, quality = fit.link(sizes_, [link.seconds(n) for n in sizes_])
    assert found.alpha == pytest.approx(alpha, rel=1e-5)
    assert found.beta == pytest.approx(beta, rel=1e-5)
    assert max(map(abs, quality.residuals)) < 1e-5


def test_no_constant_is_negative_even_if_that_would_fit_better():
    found = fit.least_squares([(1, 1), (1, 2), (1, 3)], [1, 3, 5])  # 2x − 1
    assert found.constants[0] == 0
    assert found.constants[1] > 0


def test_errors_are_relative_and_positive_when_the_prediction_is_too_long():
    found = fit.least_squares([(1,), (1,)], [1.0, 3.0])
    assert found.constants == pytest.approx((1.2,))
    assert found.residuals == pytest.approx((0.2, -0.6))


@pytest.mark.parametrize("rows, seconds, message", [
    ([(1, 2)], [1.0], "1 measurements cannot tell 2 constants"),
    ([(1, 2), (1,)], [1.0, 2.0], "of lengths"),
    ([(1,), (1,)], [1.0, 0.0], "above 0")])  # fmt: skip
def test_a_fit_of_bad_measurements_says_what_is_wrong(rows, seconds, message):
    with pytest.raises(ValueError, match=message):
        fit.least_squares(rows, seconds)


def test_a_table_is_read_between_its_points_and_beyond():
    table = {10: 1.0, 20: 3.0, 40: 3.0}
    found = [cases.interpolate(x, table) for x in (5, 10, 15, 30, 50)]
    assert found == [0, 1, 2, 3, 3]


# ---- exchanges


@quick
@given(st.sampled_from(traffic.ALGORITHMS), counts, st.integers(0, 10**9))
def test_one_array_costs_what_the_allreduce_chapter_says(way, k, nbytes):
    link = Link(1e-4, 1e-9)
    expected = traffic.seconds(way, k, nbytes, link.alpha, link.beta)
    assert step.exchange_seconds(way, k, nbytes, link) == expected


def test_arrays_cost_latency_and_no_bytes():
    link = Link(1.0, 1.0)
    assert step.exchange_seconds("ring", 2, 8, link, arrays=3) == 2 * (3 * 1 + 4)
    assert step.exchange_seconds("servers", 1, 8, link, arrays=3) == 2 * 3 + 2 * 8


@quick
@given(st.integers(1, 512), st.integers(1, 512))
def test_servers_are_the_bottleneck_while_they_are_fewer_than_workers(n, s):
    link = Link(0, 1e-9)
    seconds = step.exchange_seconds("servers", n, 10**6, link, servers=s)
    assert seconds == pytest.approx(2e-3 * max(1, n / s))


def test_compression_makes_the_push_a_sixteenth_and_leaves_the_pull():
    link = Link(0, 1.0)
    plain, small = (step.exchange_seconds("servers", 4, 32, link, pushed=p)
                    for p in (1, step.TWO_BIT))  # fmt: skip
    assert (plain, small) == (4 * 64, 4 * 34)


def test_an_unknown_way_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="naive, tree, ring, halving, servers"):
        step.exchange_seconds("star", 2, 8, Link(0, 0))


# ---- networks


def test_the_networks_have_the_parameters_of_this_library_and_of_mxnet():
    vgg = networks.build("vgg11", (3, 32, 32), try_all_devices(1)).collect_params()
    both = (LENET, lenet.SHAPES), (VGG11, [p.shape for p in vgg.values()])
    for model, shapes in both:
        assert (model.parameters, model.arrays) == (sum(map(prod, shapes)), len(shapes))
    assert cases.LENET_BYTES == LENET.nbytes
    layers = gluon.rnn.LSTM(1500, 2, input_size=1500).collect_params().values()
    inside = sum(prod(p.shape) for p in layers)
    assert LSTM.parameters == inside + 2 * 1500 * 10_000 + 10_000


def test_work_is_counted_by_eye():
    assert step.dense(2, 3) == (9, 6)
    assert step.convolution(1, 2, 3, 4) == (20, 18 * 16)
    assert step.lstm(2, 3, 5) == (4 * 3 * 5 + 24, 4 * 3 * 5 * 5)
    assert step.model_of("m", [step.dense(2, 3)]).flops == 6 * 6


def test_a_convolution_does_more_for_each_byte_than_a_dense_layer():
    assert LENET.flops_per_byte > VGG11.flops_per_byte


# ---- steps


def plans():
    ways = [(way, False) for way in step.WAYS] + [("servers", True)]
    return st.builds(
        lambda way, servers, sent: step.Plan(way[0], servers, way[1], 1e-10, *sent),
        st.sampled_from(ways), st.integers(1, 64),
        st.sampled_from([(False, False), (True, False), (False, True)]),
    )  # fmt: skip


@quick
@given(st.sampled_from(MODELS), counts, plans())
def test_no_cluster_is_more_than_perfect_and_one_device_needs_no_exchange(
    model, k, plan
):
    link = network(10)
    assert 0 < step.strong(model, 4096, k, GPU, link, plan) <= 1 + 1e-12
    assert 0 < step.weak(model, 64, k, GPU, link, plan) <= 1 + 1e-12
    alone = step.seconds(model, 64, 1, GPU, network(1), plan)
    assert alone == pytest.approx(GPU.seconds(model, 64))


def test_a_step_is_computing_and_exchange_unless_they_overlap():
    link, apart = network(1), step.Plan("ring")
    together = step.Plan("ring", overlap=True)
    compute = GPU.seconds(VGG11, 4096 / 8)
    moved = step.communication(VGG11, 8, link, apart)
    added = step.seconds(VGG11, 4096, 8, GPU, link, apart)
    assert added == pytest.approx(compute + moved)
    hidden = 21 / 22 * min(moved, 2 / 3 * (compute - GPU.overhead))
    overlapped = step.seconds(VGG11, 4096, 8, GPU, link, together)
    assert overlapped == pytest.approx(compute + moved - hidden)


@quick
@given(st.integers(1, 30), st.floats(0.01, 30))
def test_arrays_that_leave_when_they_are_made_end_as_the_formula_says(arrays, moved):
    """One array after another over one link, as backward makes them."""
    model = step.Model("", 250_000, arrays, 3.0)  # a second forward, two backward
    link, now = Link(0, moved / 1e6), 1.0
    for made in [1 + 2 * (i + 1) / arrays for i in range(arrays)]:
        now = max(now, made) + moved / arrays
    plan = step.Plan("tree", overlap=True)  # on two devices: there and back
    found = step.seconds(model, 2, 2, step.Device(1.0), Link(0, link.beta / 2), plan)
    assert found == pytest.approx(now)


def test_one_array_of_all_gradients_cannot_overlap():
    with pytest.raises(ValueError, match="waits for the last of them"):
        step.Plan("ring", overlap=True, flat=True)
    alone = replace(LENET, arrays=1)  # a network that has no more
    one, other = (step.seconds(alone, 64, 8, GPU, network(1), step.Plan(overlap=o))
                  for o in (True, False))  # fmt: skip
    assert one == other


@quick
@given(
    st.sampled_from(MODELS), counts, plans(), st.sampled_from([step.strong, step.weak])
)
def test_efficiency_is_lost_to_overhead_and_to_the_exchange_and_to_nothing_else(
    model, k, plan, scaling
):
    batch = 4096
    total = batch * (k if scaling is step.weak else 1)
    overhead, computing, waiting = step.parts(model, total, k, GPU, network(10), plan)
    one = step.seconds(model, batch, 1, GPU, network(10)) / batch  # per example
    many = (overhead + computing + waiting) / total
    found = scaling(model, batch, k, GPU, network(10), plan)
    assert found == pytest.approx(one / (k * many))
    assert overhead == GPU.overhead and computing * k == pytest.approx(
        model.flops * total / GPU.flops
    )


def test_gradients_in_one_array_pay_latency_once():
    slow, plan = Link(1.0, 0.0), step.Plan("tree")
    each = step.communication(LENET, 4, slow, plan)
    assert each == 8 * step.communication(LENET, 4, slow, replace(plan, flat=True))


def test_compression_pays_below_the_bandwidth_that_it_says_and_not_above():
    packing, n, s = 1e-9, 4, 1
    limit = step.compression_pays_below(packing, carried=n / s)
    for rate, pays in ((0.99 * limit, True), (1.01 * limit, False)):
        plain, small = (
            step.communication(VGG11, n, network(rate, 0),
                               step.Plan("servers", s, compressed, packing))
            for compressed in (False, True)
        )  # fmt: skip
        assert (small < plain) == pays
    assert step.compression_pays_below(0) == inf


def test_only_servers_unpack_gradients():
    with pytest.raises(ValueError, match="by way='ring': only way='servers'"):
        step.Plan("ring", compressed=True)


@pytest.mark.parametrize("devices", [0, -1, 2.0, True])
def test_a_number_of_devices_that_is_none_is_refused(devices):
    with pytest.raises(ValueError, match="devices must be a whole number from 1"):
        step.seconds(LENET, 64, devices, GPU, network(1))


# ---- pipelines and layers


@quick
@given(st.integers(1, 8), st.integers(1, 32))
def test_equal_stages_lose_the_bubble_and_nothing_else(p, m):
    seconds = step.pipeline_seconds([1.0] * p, [2.0] * p, m)
    assert seconds == 3 * (m + p - 1)
    bubble = 1 - p * m * 3 / (p * seconds)
    assert bubble == pytest.approx((p - 1) / (m + p - 1))


def test_the_slowest_stage_counts_once_for_each_micro_batch():
    seconds = step.pipeline_seconds([1, 3], [2, 2], chunks=4)
    assert seconds == (1 + 3 + 2 + 2) + 3 * (3 + 2)


def test_stages_without_all_their_times_are_refused():
    with pytest.raises(ValueError, match="2 forward times and 1 backward times"):
        step.pipeline_seconds([1, 2], [1], 4)


# ---- batch size


def test_at_the_critical_batch_size_both_steps_and_examples_are_twice_the_least():
    least_steps, critical = 1000, 256
    assert step.steps_to_loss(critical, critical, least_steps) == 2 * least_steps
    huge, tiny = step.steps_to_loss(1e12, critical, 1000), 1e-6
    assert huge == pytest.approx(1000)
    fewest = tiny * step.steps_to_loss(tiny, critical, 1000)
    examples = critical * step.steps_to_loss(critical, critical, 1000)
    assert examples == pytest.approx(2 * fewest)


# ---- this machine


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
}  # fmt: skip


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
    assert min(found.values()) > 0


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
        "dist": (5, 0, 0, 0), "dist lenet": (2, 3)})  # fmt: skip
    assert known.seconds(("layerwise", 2, 4, 8)) == (1 + 0.5 * 4 + 0.25 * 4 * 4) + 20
    assert known.seconds(("dist lenet", 4, 1, 40)) == 2 * (10 * 2) + 3 * 5
    assert known.seconds(("pipeline", (1, 1), 4, 3)) == pytest.approx(2 + 2)
