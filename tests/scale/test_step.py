"""The formulas of the cost model: by eye, by their limits, and against the networks."""

import d2l_ext  # noqa: F401, I001
from dataclasses import replace
from math import inf, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import gluon, npx

from d2l_ext.data_parallel import lenet
from trainkit import networks
from d2l_ext.scale import step
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


# ---- exchanges


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
                    for p in (1, step.TWO_BIT))
    assert (plain, small) == (4 * 64, 4 * 34)


# ---- networks


def test_the_networks_have_the_parameters_of_this_library_and_of_mxnet():
    vgg = networks.build("vgg11", (3, 32, 32), try_all_devices(1)).collect_params()
    both = (LENET, lenet.SHAPES), (VGG11, [p.shape for p in vgg.values()])
    for model, shapes in both:
        assert (model.parameters, model.arrays) == (sum(map(prod, shapes)), len(shapes))
    layers = gluon.rnn.LSTM(1500, 2, input_size=1500).collect_params().values()
    inside = sum(prod(p.shape) for p in layers)
    assert LSTM.parameters == inside + 2 * 1500 * 10_000 + 10_000


def test_work_is_counted_by_eye():
    assert step.dense_layer(2, 3) == (9, 6)
    assert step.convolution_layer(1, 2, 3, 4) == (20, 18 * 16)
    assert step.lstm_layer(2, 3, 5) == (4 * 3 * 5 + 24, 4 * 3 * 5 * 5)
    assert step.model_of("m", [step.dense_layer(2, 3)]).flops == 6 * 6


# ---- steps


def plans():
    ways = [(way, False) for way in step.WAYS] + [("servers", True)]
    return st.builds(
        lambda way, servers, sent: step.StepPlan(way[0], servers, way[1], 1e-10, *sent),
        st.sampled_from(ways), st.integers(1, 64),
        st.sampled_from([(False, False), (True, False), (False, True)]),
    )


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
    link, apart = network(1), step.StepPlan("ring")
    together = step.StepPlan("ring", overlap=True)
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
    plan = step.StepPlan("tree", overlap=True)  # on two devices: there and back
    found = step.seconds(model, 2, 2, step.Device(1.0), Link(0, link.beta / 2), plan)
    assert found == pytest.approx(now)


def test_one_array_cannot_overlap():
    alone = replace(LENET, arrays=1)  # a network that has no more
    one, other = (step.seconds(alone, 64, 8, GPU, network(1), step.StepPlan(overlap=o))
                  for o in (True, False))
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
    slow, plan = Link(1.0, 0.0), step.StepPlan("tree")
    each = step.communication(LENET, 4, slow, plan)
    assert each == 8 * step.communication(LENET, 4, slow, replace(plan, flat=True))


def test_compression_pays_below_the_bandwidth_that_it_says_and_not_above():
    packing, n, s = 1e-9, 4, 1
    limit = step.compression_pays_below(packing, carried=n / s)
    for rate, pays in ((0.99 * limit, True), (1.01 * limit, False)):
        plain, small = (
            step.communication(VGG11, n, network(rate, 0),
                               step.StepPlan("servers", s, compressed, packing))
            for compressed in (False, True)
        )
        assert (small < plain) == pays
    assert step.compression_pays_below(0) == inf


# ---- pipelines and layers


def test_the_slowest_stage_counts_once_for_each_micro_batch():
    seconds = step.pipeline_seconds([1, 3], [2, 2], chunks=4)
    assert seconds == (1 + 3 + 2 + 2) + 3 * (3 + 2)


# ---- batch size


def test_at_the_critical_batch_size_both_steps_and_examples_are_twice_the_least():
    least_steps, critical = 1000, 256
    assert step.steps_to_loss(critical, critical, least_steps) == 2 * least_steps
    huge, tiny = step.steps_to_loss(1e12, critical, 1000), 1e-6
    assert huge == pytest.approx(1000)
    fewest = tiny * step.steps_to_loss(tiny, critical, 1000)
    examples = critical * step.steps_to_loss(critical, critical, 1000)
    assert examples == pytest.approx(2 * fewest)


# ---- what is refused


@pytest.mark.parametrize("ask, message", [
    (lambda: Link(-1, 0), "must be a number of .* 0"),
    (lambda: Link(0, float("nan")), "must be a number of .* 0"),
    (lambda: Link("1", 0), "must be a number of .* 0"),
    (lambda: network(0), "bandwidth above 0"),
    (lambda: step.exchange_seconds("pigeons", 2, 8, Link(0, 0)),
     "choose from .*naive, .*tree, servers"),
    (lambda: step.StepPlan("ring", overlap=True, flat=True),
     "waits for the last of them"),
    (lambda: step.StepPlan("ring", compressed=True),
     "needs way='servers', not way='ring'"),
    (lambda: step.seconds(LENET, 64, 0, GPU, network(1)),
     "devices must be a whole number of at least 1, not 0"),
    (lambda: step.pipeline_seconds([1, 2], [1], 4),
     "2 forward times and 1 backward times"),
])
def test_what_cannot_be_is_refused_with_its_values(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()
