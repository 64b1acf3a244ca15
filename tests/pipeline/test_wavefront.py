"""The schedule takes as few slots as its bound says, and the engine keeps to it."""

import d2l_ext  # noqa: F401, I001  (before MXNet)
import mxnet as mx
import numpy
import pytest
from held_devices import TWO, done_alone, held
from hypothesis import given
from hypothesis import strategies as st

from d2l_ext.pipeline import lstm, wavefront
from d2l_ext import pipeline
from d2l_ext.devices import timeline
from d2l_ext.devices import try_all_devices


@given(st.integers(1, 6), st.integers(1, 20))
def test_every_step_follows_the_device_and_the_step_before_it(k, num_steps):
    slots = wavefront.schedule(k, num_steps)
    slot_of = {cell: slot for slot, work in enumerate(slots) for cell in work}
    assert sorted(slot_of) == [(i, t) for i in range(k) for t in range(num_steps)]
    for (i, t), slot in slot_of.items():
        assert i == 0 or slot_of[i - 1, t] < slot
        assert t == 0 or slot_of[i, t - 1] < slot
    devices = [[i for i, _ in work] for work in slots]
    assert all(own == sorted({*own}) for own in devices)
    assert wavefront.bound(k, num_steps) == pytest.approx(k * num_steps / len(slots))


L, T, H, N, V = 4, 6, 8, 3, 11


@pytest.fixture(scope="module")
def two():
    return try_all_devices(2)


@pytest.fixture(scope="module")
def bound(two):
    symbol, shapes = lstm.lstm_unroll(L, T, H, H, V), lstm.input_shapes(L, T, N, H)
    parts = pipeline.split(lstm.groups(L), [3])
    return pipeline.bind(symbol, pipeline.placement(parts, two), shapes)


def recorded(bound, two, times=1):
    X = numpy.zeros((T, N))
    with timeline.record(two) as trace:
        for _ in range(times):
            bound.forward_backward(X, X)
    return trace


def test_every_cell_is_found_forward_and_backward_on_its_device(bound, two):
    cells = wavefront.recorded_cells(recorded(bound, two), bound)
    found = [(c.kind, c.layer, c.step) for c in cells]
    assert sorted(found) == [
        (kind, layer, step)
        for kind in ("backward", "forward")
        for layer in range(L)
        for step in range(T)
    ]
    lanes = [f"{d.device_type}/{d.device_id}" for d in two]
    assert all(c.device == lanes[c.layer // 2] and c.start < c.end for c in cells)


def test_no_cell_starts_before_those_that_it_needs_have_ended(bound, two):
    cells = wavefront.recorded_cells(recorded(bound, two), bound)
    at = {(c.kind, c.layer, c.step): c for c in cells}
    for (kind, layer, step), cell in at.items():
        for before in (layer - 1, step), (layer, step - 1):
            needed = at.get((kind, *before))
            if needed and kind == "forward":
                assert needed.start < cell.end and needed.start < cell.start
            if needed and kind == "backward":
                assert cell.start < needed.end
    first_backward = min(c.start for c in cells if c.kind == "backward")
    assert all(c.end <= first_backward for c in cells if c.kind == "forward")


def test_products_of_a_device_run_step_by_step_in_both_directions(bound):
    """Layer 0's own gradients do not wait for the end of the backward pass."""
    for names in wavefront.products(bound).values():
        steps = [int(n.split("_")[1][1:]) for n in names if n.startswith("l")]
        half = len(steps) // 2
        assert steps[:half] == sorted(steps[:half])
        assert steps[half:] == sorted(steps[half:], reverse=True)


def test_a_record_of_two_steps_is_refused(bound, two):
    with pytest.raises(ValueError, match=r"96 matrix products.*has 48.*exactly one"):
        wavefront.recorded_cells(recorded(bound, two, times=2), bound)


def test_the_first_device_sends_a_step_on_before_it_begins_the_next_but_one():
    """It needs nothing of the second, whatever that does; and nothing waits."""
    symbol, shapes = lstm.lstm_unroll(L, T, H, H, V), lstm.input_shapes(L, T, N, H)
    parts = pipeline.split(lstm.groups(L), [3])
    bound = pipeline.bind(symbol, pipeline.placement(parts, TWO), shapes)
    X = mx.nd.zeros((T, N))
    did = done_alone(lambda: bound.forward(X, X, is_train=True), TWO[0], TWO)
    at = [i for i, name in enumerate(did) if name == "FullyConnected"]
    sent = [i for i, name in enumerate(did) if name == "CopyCPU2CPU"]
    assert (len(at), len(sent)) == (2 * 2 * T, T)  # two layers, of two products each
    assert all(sent[t] < at[4 * (t + 2) - 1] for t in range(T - 1))
    with held(*TWO):
        bound.forward_backward(X, X)
        bound.update(0.1)
