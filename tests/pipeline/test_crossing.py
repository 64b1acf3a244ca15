"""Bytes that a placement moves, counted from the graph, are those that move."""

import d2l_ext  # noqa: F401, I001  (before MXNet)
import numpy
import pytest

from d2l_ext.pipeline import graph, lstm
from d2l_ext import pipeline
from d2l_ext.devices import timeline
from d2l_ext.devices import try_all_devices

L, T, E, H, N, V = 4, 5, 8, 16, 3, 11
HIDDEN = 4 * N * H  # bytes of a layer's output of one time step
TWO = try_all_devices(2)
CONTIGUOUS = pipeline.split(lstm.groups(L), [3])
INTERLEAVED = [["embed", "layer0", "layer2"], ["layer1", "layer3", "decode"]]


def count(parts, devices=TWO, **options):
    symbol = lstm.lstm_unroll(L, T, E, H, V, **options)
    shapes = lstm.input_shapes(L, T, N, H)
    return graph.crossings(symbol, pipeline.placement(parts, devices), shapes)


@pytest.mark.parametrize("parts, expected", [
    ([lstm.groups(L)], []),
    (CONTIGUOUS, [(*TWO, T * HIDDEN, T * HIDDEN, 2 * T)]),
    (INTERLEAVED, [(*TWO, 2 * T * HIDDEN, 2 * T * HIDDEN, 4 * T),
                   (*TWO[::-1], T * HIDDEN, T * HIDDEN, 2 * T)]),
])  # fmt: skip
@pytest.mark.parametrize("options", [{}, {"fused": False}, {"concat_decode": False}])
def test_a_hidden_state_crosses_per_step_once_and_its_gradient(
    parts, expected, options
):
    assert count(parts, **options) == expected


def test_embedding_and_decoder_cross_with_their_own_sizes():
    (only,) = count(pipeline.split(lstm.groups(L), [1]))
    assert only.forward == T * 4 * N * E
    for apart in ({}, {"concat_decode": False}):
        (only,) = count(pipeline.split(lstm.groups(L), [5]), **apart)
        assert only.forward == only.backward == T * HIDDEN


def test_labels_have_no_gradient_that_would_cross_back():
    symbol, shapes = lstm.lstm_unroll(1, T, E, H, V), lstm.input_shapes(1, T, N, H)
    group2ctx = pipeline.placement([["embed", "layer0"], ["decode"]], TWO)
    before = graph.crossings(symbol, group2ctx, shapes)
    # The label arrives on the first device, and its graph cannot tell.
    moved = lstm.lstm_unroll(1, T, E, H, V)
    moved.get_internals()["softmax_label"]._set_attr(__ctx_group__="embed")
    (after,) = graph.crossings(moved, group2ctx, shapes)
    assert after.forward == before[0].forward + 4 * T * N
    assert after.backward == before[0].backward
    assert after.copies == before[0].copies + 1


@pytest.mark.parametrize("parts", [CONTIGUOUS, INTERLEAVED])
def test_the_engine_copies_as_often_as_counted(parts):
    symbol, shapes = lstm.lstm_unroll(L, T, E, H, V), lstm.input_shapes(L, T, N, H)
    group2ctx = pipeline.placement(parts, TWO)
    bound = pipeline.bind(symbol, group2ctx, shapes)
    X = numpy.zeros((T, N))
    bound.forward(X, X, is_train=True)  # copies in what comes from outside
    with timeline.record(TWO) as trace:
        bound.executor.forward(is_train=True)
        bound.executor.backward()
    found = sum(e.kind == "copy" for e in trace.events)
    assert found == sum(c.copies for c in count(parts))


def test_each_device_holds_the_parameters_of_its_layers():
    symbol, shapes = lstm.lstm_unroll(L, T, E, H, V), lstm.input_shapes(L, T, N, H)
    group2ctx = pipeline.placement(CONTIGUOUS, TWO)
    bound = pipeline.bind(symbol, group2ctx, shapes)
    counted = graph.param_bytes(symbol, group2ctx, shapes)
    for device in TWO:
        held = sum(p.size * 4 for p in bound.params.values() if p.ctx == device)
        assert counted[device] == held
    layer = 4 * (4 * H * (H + H) + 2 * 4 * H)
    assert counted[TWO[1]] == 2 * layer + 4 * (V * H + V)
    everything = pipeline.placement([lstm.groups(L)], TWO)
    whole = graph.param_bytes(symbol, everything, shapes)
    assert whole == {TWO[0]: sum(counted.values())}
