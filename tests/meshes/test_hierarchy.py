"""An allreduce over two kinds of links: the sum, what each link carries, its time."""

import d2l_ext  # noqa: F401, I001
import subprocess
from collections import Counter

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import np, npx
from notebook_cells import ROOT

from benchmarks.meshes.two_links import trials
from d2l_ext.data_parallel import costs, traffic
from d2l_ext.data_parallel.diagnose import blocking_calls
from d2l_ext.devices import try_all_devices
from d2l_ext.meshes.hierarchy import allreduce_hierarchy, flat, schedule, seconds
from d2l_ext.scale import simulator, step
from d2l_ext.scale.step import LENET, Link

npx.set_np()

hosts_of = st.tuples(st.integers(1, 4), st.integers(1, 4))
INNER, OUTER = Link(1e-6, 1e-11), Link(1e-5, 1e-10)


def on_devices(parts):
    devices = try_all_devices(len(parts))
    return [np.array(x, dtype=x.dtype, ctx=d) for x, d in zip(parts, devices)]


@settings(max_examples=60)
@given(hosts_of, st.sampled_from([0, 1, 7, 12, 41]), st.integers(0, 2**32 - 1))
def test_the_sum_and_what_each_device_sends_and_gets(shape, size, seed):
    (h, d), rng = shape, numpy.random.RandomState(seed)
    parts = [rng.randn(size).astype("float32") for _ in range(h * d)]
    data = on_devices(parts)
    with traffic.count(try_all_devices(h * d)) as moved:
        allreduce_hierarchy(data, hosts=h)
    wide = numpy.array(parts, dtype="float64")
    bound = h * d * numpy.finfo("float32").eps * abs(wide).sum(0)
    assert (abs(data[0].asnumpy() - wide.sum(0)) <= bound).all()
    assert len({x.asnumpy().tobytes() for x in data}) == 1
    sent, received, rounds = Counter(), Counter(), schedule(h, d, size)
    for i, j, n in (message for row in rounds for message in row):
        sent[i] += 4 * n
        received[j] += 4 * n
    assert moved.sent == [sent[i] for i in range(h * d)]
    assert moved.received == [received[i] for i in range(h * d)]
    assert moved.steps == len(rounds) == 2 * (d - 1) + 2 * (h - 1)


def outer_bytes(rounds, d):
    """What leaves over each device's link to other hosts, and comes in over it."""
    out, into = Counter(), Counter()
    for i, j, n in (message for row in rounds for message in row):
        if i // d != j // d:
            out[i] += n
            into[j] += n
    return out, into


@pytest.mark.parametrize("h", [2, 3, 16])
@pytest.mark.parametrize("d", [2, 4, 8])
def test_an_outer_link_carries_less_than_a_dth_of_the_flat_rings(h, d):
    nbytes, k = 4 * h * d, h * d
    in_hosts, around = schedule(h, d, nbytes), flat(range(k), nbytes)
    for ours, ring in zip(outer_bytes(in_hosts, d), outer_bytes(around, d)):
        assert len(ours) == k and len({*ours.values()}) == 1 and len(ring) == h
        assert ours[0] == 2 * (h - 1) * nbytes // k
        assert max(ring.values()) == 2 * (k - 1) * nbytes // k
        assert ours[0] * (k - 1) == max(ring.values()) * (h - 1)  # below a d-th
        assert sum(ours.values()) * (k - 1) == sum(ring.values()) * (k - d)


@settings(max_examples=60)
@given(hosts_of, st.lists(st.floats(0, 1), min_size=16, max_size=16))
def test_the_simulator_ends_as_the_formula_says(shape, late):
    (h, d), nbytes = shape, 4 * 12 * 12

    def route(i, j):
        inside = i // d == j // d
        return (i, inside), INNER if inside else OUTER

    for start in ([0.0] * (h * d), late[: h * d]):
        ends, _ = simulator.messages(schedule(h, d, nbytes), route, start)
        took = seconds(h, d, nbytes, INNER, OUTER)
        assert max(ends) == pytest.approx(max(start) + took)
    slowest = OUTER if h > 1 else INNER
    ends, _ = simulator.messages(flat(range(h * d), nbytes), route, [0.0] * (h * d))
    by_hand = costs.seconds("ring", h * d, nbytes, slowest.alpha, slowest.beta)
    assert max(ends) <= by_hand * (1 + 1e-9)


def test_devices_that_share_a_card_wait_for_one_another():
    def route(i, j):
        inside = i // 4 == j // 4
        return ((i, inside), INNER) if inside else (i // 4, Link(0, OUTER.beta))

    _, carried = simulator.messages(schedule(2, 4, 3200), route, [0.0] * 8)
    assert {i for *_, i in carried[0]} == {0, 1, 2, 3}
    times = sorted((begin, end) for begin, end, *_ in carried[0])
    assert all(a[1] <= b[0] + 1e-15 for a, b in zip(times, times[1:]))
    used = sum(end - begin for begin, end in times)
    assert used == pytest.approx(4 * 2 * 400 * OUTER.beta)


def test_the_cost_model_knows_hosts():
    plan = step.StepPlan("hierarchy", per_host=4, inner=INNER)
    moved = step.communication(LENET, 16, OUTER, plan)
    inner, outer = (Link(LENET.arrays * x.alpha, x.beta) for x in (INNER, OUTER))
    assert moved == seconds(4, 4, LENET.nbytes, inner, outer)
    assert moved < step.communication(LENET, 16, OUTER, step.StepPlan("ring"))
    one = step.exchange_seconds("ring", 3, LENET.nbytes, INNER, arrays=LENET.arrays)
    assert step.communication(LENET, 3, OUTER, plan) == pytest.approx(one)
    for wrong in (plan, step.StepPlan("hierarchy", per_host=2)):
        with pytest.raises(ValueError, match="6 devices, .* fill every host, and give"):
            step.communication(LENET, 6, OUTER, wrong)


def test_the_drawing_has_what_the_outer_links_carry():
    text = (ROOT / "chapters/img/two_links.svg").read_text("utf-8")
    around, ours = flat(range(8), 8), schedule(2, 4, 8)
    for rounds, eighths in ((around, "14"), (ours, "2")):
        carried = {*map(str, outer_bytes(rounds, 4)[0].values())} - {"0"}
        assert carried == {eighths}
    assert (text.count(">7/4<"), text.count(">1/4<")) == (2, 4)


def test_it_does_not_wait_and_refuses_hosts_that_do_not_divide():
    data = on_devices([numpy.ones(9)] * 6)
    with blocking_calls() as waits:
        allreduce_hierarchy(data, hosts=3)
    assert waits == [] and (data[5].asnumpy() == 6).all()
    with pytest.raises(ValueError, match="6 devices cannot be divided evenly over 4"):
        allreduce_hierarchy(data, hosts=4)
    with pytest.raises(ValueError, match="hosts must be a whole number of .* 1, not 0"):
        allreduce_hierarchy(data, hosts=0)
    for counts, name in (((0, 1), "hosts"), ((2, 0), "devices")):
        with pytest.raises(ValueError, match=f"{name} must be a whole number"):
            seconds(*counts, 8, INNER, OUTER)


def test_processes_over_sockets_send_what_the_formula_says():
    here = [["127.0.0.1"] * 2] * 4
    found = trials.run(2, 2, here, 4000, 1, [subprocess.Popen] * 4)
    assert {way: row["sums"] for way, row in found.items()} == {
        "flat": [10.0], "hierarchy": [10.0]}
    assert found["flat"]["sent"] == [{"flat": 24000, "inside": 0, "between": 0}] * 4
    ours = {"flat": 0, "inside": 16000, "between": 8000}
    assert found["hierarchy"]["sent"] == [ours] * 4
