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


def test_nothing_crosses_on_one_device():
    assert count([lstm.groups(L)]) == []


def test_neighbours_pass_on_a_hidden_state_per_step_and_get_its_gradient():
    (only,) = count(CONTIGUOUS)
    assert only == (*TWO, T * HIDDEN, T * HIDDEN, 2 * T)


def test_interleaved_layers_cross_three_times_as_much():
    there, back = count(INTERLEAVED)
    assert (there.source, there.target) == tuple(TWO) == (back.target, back.source)
    assert there[2:] == (2 * T * HIDDEN, 2 * T * HIDDEN, 4 * T)
    assert back[2:] == (T * HIDDEN, T * HIDDEN, 2 * T)


@pytest.mark.parametrize("concat_decode", [True, False])
def test_the_decoder_gets_every_step_whether_it_decodes_each_or_all(concat_decode):
    parts = pipeline.split(lstm.groups(L), [5])
    (only,) = count(parts, concat_decode=concat_decode)
    assert only.forward == only.backward == T * HIDDEN


def test_a_value_that_four_products_need_crosses_once():
    assert count(CONTIGUOUS, fused=False) == count(CONTIGUOUS)
    assert count(INTERLEAVED, fused=False) == count(INTERLEAVED)


def test_the_embedding_crosses_with_its_own_size():
    (only,) = count(pipeline.split(lstm.groups(L), [1]))
    assert only.forward == T * 4 * N * E


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
