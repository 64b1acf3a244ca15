"""The rungs of the ladder train the same network, but for those that say otherwise."""

import d2l_ext  # noqa: F401, I001  (before MXNet's engine)

import os
import shutil

import numpy
import pytest
from mxnet import MXNetError, np, npx

from benchmarks.data_parallel import ladder
from d2l_ext.data import load_arrays
from d2l_ext.data_parallel import lenet
from d2l_ext.devices import timeline, try_all_devices

npx.set_np()
DATA = load_arrays("digits")
WHOLE = [rung for rung in ladder.RUNGS
         if rung.id not in ("joined", "channels-last")]


def trained(rung, steps=3, batch=64):
    """The arrays after a few steps of the rung's way, all on the same minibatches."""
    step = rung.step(lenet.init_params(), batch, try_all_devices(rung.devices))
    for i in range(steps):
        own = slice(i * batch, (i + 1) * batch)
        step(np.array(DATA.train_X[own]), np.array(DATA.train_y[own], dtype="int32"),
             0.2)
    return [p.asnumpy() for p in step.params()]


@pytest.fixture(scope="module")
def reference():
    return trained(ladder.RUNGS[1])


@pytest.mark.parametrize("rung", WHOLE, ids=lambda rung: rung.id)
def test_a_rung_gives_the_weights_of_the_plain_step(rung, reference):
    if rung.step is ladder.ReluPool and not shutil.which("g++"):
        pytest.skip("relu_pool.cc needs g++")
    for own, plain in zip(trained(rung), reference):
        numpy.testing.assert_allclose(own, plain, atol=1e-5)


def test_the_joined_graph_trains_the_dense_layers_only(reference):
    joined = trained(next(r for r in ladder.RUNGS if r.id == "joined"))
    begin = [p.asnumpy() for p in lenet.init_params()]
    still = [bool((a == b).all()) for a, b in zip(joined, begin)]
    assert still == [True] * 4 + [False] * 4


def test_channels_as_the_last_axis_are_refused_by_mxnet():
    rung = next(r for r in ladder.RUNGS if r.id == "channels-last")
    assert "convolution" in ladder.why_not(rung, DATA)
    with pytest.raises(MXNetError):
        trained(rung)


@pytest.mark.skipif(not shutil.which("g++"), reason="relu_pool.cc needs g++")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_two_devices_take_turns_with_an_operator_of_a_loaded_library():
    X, y = np.array(DATA.train_X[:256]), np.array(DATA.train_y[:256], dtype="int32")
    step = ladder.ReluPool(lenet.init_params(), 256, try_all_devices(2))
    step(X, y, 0.2)
    with timeline.record() as trace:
        for _ in range(3):
            step(X, y, 0.2)
    spans = sorted((event.start, event.end) for event in trace.events
                   if "relu_pool" in event.name)
    assert len(spans) >= 6
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:]))


def test_every_rung_changes_one_that_stands_before_it():
    seen = {""}
    for rung in ladder.RUNGS:
        assert rung.under in seen
        seen.add(rung.id)


def test_the_roof_counts_three_forward_passes():
    """Of each operator the larger bound: with free bytes, the flops over the peak."""
    flops = sum(f for f, _ in ladder.OPERATORS)
    assert ladder.least_seconds(256, 1e9, float("inf")) == pytest.approx(
        3 * 256 * flops / 1e9)
    assert ladder.least_seconds(1, float("inf"), 1e9) == pytest.approx(
        3 * sum(b for _, b in ladder.OPERATORS) / 1e9)


def test_a_row_says_how_many_times_as_fast_within_a_round():
    below, above = ladder.RUNGS[:2]
    runs = {below.id: [run(2), run(9), run(4)], above.id: [run(1), run(3), run(8)]}
    row = ladder.row(above, runs, 1e11, 1e10)
    assert row["times"] == 2 and row["reached"] == 3 and row["seconds"] == [1, 3, 8]
    assert row["step_ms"] == 3000 / 10
    assert ladder.row(below, runs, 1e11, 1e10)["times"] is None


def run(seconds):
    return {"seconds": seconds, "steps": 10, "reached": True, "still": 0}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_each_worker_is_bound_to_a_core_of_its_own_and_let_go():
    free = os.sched_getaffinity(0)
    with ladder.bound_to_cores(try_all_devices(2)) as threads:
        bound = [os.sched_getaffinity(thread) for thread in threads]
    assert bound == [{core} for core in sorted(free)[:2]]
    assert all(os.sched_getaffinity(thread) == free for thread in threads)
