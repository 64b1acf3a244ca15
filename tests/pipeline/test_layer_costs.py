"""Costs of layers: bytes equal the closed forms, a group alone computes the same."""

import d2l_ext  # noqa: F401, I001
import mxnet as mx
import numpy
import pytest

from d2l_ext.pipeline import layer_costs, lstm
from d2l_ext import pipeline
from d2l_ext.devices import try_all_devices
from d2l_ext.pipeline.graph import groups
from d2l_ext.pipeline.layer_costs import subgraph

L, T, N, E, H, V = 2, 3, 4, 5, 6, 7
SHAPES = lstm.input_shapes(L, T, N, H)


def network(concat_decode=True):
    return lstm.lstm_unroll(L, T, E, H, V, concat_decode=concat_decode)


def tokens(seed):
    return mx.nd.array(numpy.random.RandomState(seed).randint(0, V, (T, N)))


def measured(symbol, rounds=1):
    values = {"data": tokens(0), "softmax_label": tokens(1)}
    return layer_costs.measure(symbol, SHAPES, values, try_all_devices(2), rounds)


def test_the_groups_come_in_the_order_in_which_data_pass():
    assert groups(network()) == ["embed", "layer0", "layer1", "decode"]
    with mx.AttrScope(ctx_group="first"):
        h = mx.sym.exp(mx.sym.var("x"))
    with mx.AttrScope(ctx_group="second"):
        assert groups(mx.sym.var("w") * h) == ["first", "second"]


def test_a_group_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="there is no group 'layer9', only"):
        subgraph(network(), "layer9", SHAPES)


@pytest.mark.parametrize("concat_decode", [True, False])
def test_the_groups_joined_again_give_what_the_whole_gives(concat_decode):
    symbol, (device, _) = network(concat_decode), try_all_devices(2)
    params = lstm.init_params(symbol, SHAPES)
    whole = pipeline.bind(symbol, dict.fromkeys(groups(symbol), device), SHAPES, params)
    expected = whole.forward(tokens(0), tokens(1))
    known = {**params, "data": tokens(0), "softmax_label": tokens(1)}
    for name in SHAPES:
        known.setdefault(name, mx.nd.zeros(SHAPES[name]))
    for group in groups(symbol):
        part, inputs = subgraph(symbol, group, SHAPES)
        args = {n: known[n] for n in part.list_arguments()}
        assert {n: args[n].shape for n in inputs} == inputs
        outputs = part.bind(device, args).forward()
        known.update(zip(names_for_others(part), outputs))
    assert all((a == b).asnumpy().all() for a, b in zip(outputs, expected))


def names_for_others(part):
    """`embed_output` is `embed_0` in other groups, `steps_output2` is `steps_2`."""
    for name in part.list_outputs():
        node, _, number = name.rpartition("_output")
        yield f"{node}_{number or 0}"


def test_parameter_bytes_equal_the_closed_form():
    found = [c.parameter_bytes for c in measured(network())]
    layer = [4 * (4 * H * n + 4 * H * H + 8 * H) for n in (E, H)]
    assert found == [4 * V * E, *layer, 4 * (V * H + V)]


def test_activation_bytes_are_those_of_all_results_of_the_operators():
    counted = layer_costs.held_bytes(network(), "decode", SHAPES)["activation_bytes"]
    concat, label, scores, softmax = T * N * H, T * N, T * N * V, T * N * V
    assert counted == 4 * (concat + label + scores + softmax)
    # An LSTM cell: two products and their sum, four gates, their four activations,
    # two products of gates and their sum, tanh, and the output.
    counted = layer_costs.held_bytes(network(), "layer1", SHAPES)["activation_bytes"]
    assert counted == 4 * T * N * H * (3 * 4 + 4 + 4 + 3 + 1 + 1)


def test_the_first_round_warms_up_and_medians_are_of_the_others(monkeypatch):
    rounds = iter([[1000, 1000, 1000], [3, 30, 300], [1, 10, 100], [2, 20, 200]])
    times = (row for row in rounds for _ in groups(network()))
    monkeypatch.setattr(layer_costs, "_time", lambda *_: next(times))
    costs = measured(network(), rounds=3)
    assert [c.name for c in costs] == groups(network())
    assert [(c.forward, c.backward, c.crossing) for c in costs] == [(2, 20, 200)] * 4


class PlayedExecutor:
    """Takes 1 s forward, 2 s backward, when it is waited for; 4 s to send a result."""

    def __init__(self):
        self.now, self.queued, self.outputs = 0.0, 0.0, [self, self]

    def forward(self, is_train):
        self.queued += 1 if is_train else 100

    def backward(self, ones):
        self.queued += 2

    def copyto(self, other):
        self.queued += 4
        return self

    def wait_to_read(self):
        self.now, self.queued = self.now + self.queued, 0.0


def test_forward_backward_and_sending_are_timed_apart_in_milliseconds(monkeypatch):
    played = PlayedExecutor()
    monkeypatch.setattr(mx.nd, "waitall", played.wait_to_read)
    monkeypatch.setattr(layer_costs, "perf_counter", lambda: played.now)
    assert layer_costs._time((played, None), None) == [1000, 2000, 8000]


def test_embedding_and_concatenated_decoder_work_on_all_time_steps_at_once():
    assert [c.whole for c in measured(network())] == [True, False, False, True]
    apart = measured(network(concat_decode=False))
    assert [c.whole for c in apart] == [True, False, False, False]


def test_no_rounds_and_a_single_device_are_refused():
    with pytest.raises(ValueError, match="0 rounds on 2 devices"):
        layer_costs.measure(network(), SHAPES, {}, try_all_devices(2), rounds=0)
    with pytest.raises(ValueError, match="5 rounds on 1 devices"):
        layer_costs.measure(network(), SHAPES, {}, try_all_devices(1))


@pytest.mark.parametrize("concat_decode", [True, False])
def test_the_graph_of_the_whole_has_the_order_that_predictions_assume(concat_decode):
    """MXNet prints its nodes in the order in which it hands them to the engine."""
    from d2l_ext.pipeline.partition import Layer, cells

    symbol, (device, _) = network(concat_decode), try_all_devices(2)
    bound = pipeline.bind(symbol, dict.fromkeys(groups(symbol), device), SHAPES)
    nodes = [line.split("Name=")[1] for line in bound.executor.debug_str().splitlines()
             if line.startswith("Op:")]
    layers = [Layer(g, 0, 0, whole=layer_costs.is_whole(symbol, g))
              for g in groups(symbol)]
    expected = [
        product(*cell, whole=layers[cell[1]].whole) for cell in cells(layers, T)
    ]
    found = [name for name in nodes if name in expected]
    assert found == expected


def product(kind, i, t, whole=False):
    """Name of the matrix product, or the lookup, of a cell."""
    name = {0: "embed", L + 1: "decode" if whole else f"decode_t{t}"}.get(
        i, f"l{i - 1}_t{t}_i2h"
    )
    return name + "_backward" * (kind == "backward")
