"""However its groups are placed, a pipeline gives what one device gives."""

import d2l_ext  # noqa: F401, I001  (before MXNet)
from contextlib import nullcontext

import mxnet as mx
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2l_ext.pipeline import graph, lstm
from d2l_ext import pipeline
from d2l_ext.devices import timeline
from d2l_ext.devices import try_all_devices

H, N, V = 16, 3, 11
ONE, TWO, FOUR = (try_all_devices(k) for k in (1, 2, 4))


def make(num_layers, steps, parts, devices, params=None, **options):
    symbol = lstm.lstm_unroll(num_layers, steps, 5, H, V, **options)
    shapes = lstm.input_shapes(num_layers, steps, N, H)
    params = params or lstm.init_params(symbol, shapes, scale=0.5)
    return pipeline.bind(symbol, pipeline.placement(parts, devices), shapes, params)


def batch(steps, seed=0):
    return numpy.random.RandomState(seed).randint(0, V, (2, steps, N))


def results(bound, X, y):
    """Outputs and every gradient of a training step, as numpy arrays by name."""
    bound.forward_backward(X, y)
    outputs = {f"output {i}": out.asnumpy() for i, out in enumerate(bound.outputs)}
    return {**outputs, **{n: g.asnumpy() for n, g in bound.gradients().items()}}


def assert_equal_to_one_device(num_layers, steps, parts, devices, **options):
    X, y = batch(steps)
    one = results(
        make(num_layers, steps, [lstm.groups(num_layers)], ONE, **options), X, y
    )
    many = results(make(num_layers, steps, parts, devices, **options), X, y)
    assert one.keys() == many.keys() and len(one) == 3 + 4 * num_layers + (
        1 if options.get("concat_decode", True) else steps
    )
    for name in one:
        assert (one[name] == many[name]).all(), name
        no_state_yet = "h2h_weight" in name and steps == 1
        assert one[name].any() != no_state_yet, name


@st.composite
def placements(draw):
    """Every group on any of four devices, neighbours or not; some stay empty."""
    num_layers = draw(st.integers(1, 4))
    parts = [[], [], [], []]
    for name in lstm.groups(num_layers):
        parts[draw(st.integers(0, 3))].append(name)
    return num_layers, parts


# MXNet sums the gradients of a shared parameter in another way from eight on.
@settings(max_examples=25)
@given(placements(), st.sampled_from([1, 2, 7, 8, 9, 35]), st.booleans())
def test_any_placement_gives_the_bits_of_one_device(placed, steps, concat_decode):
    num_layers, parts = placed
    assert_equal_to_one_device(
        num_layers, steps, parts, FOUR, concat_decode=concat_decode
    )


def test_a_value_with_eight_readers_on_two_devices_is_refused():
    """MXNet would add its gradients in place, and lose those from the other device.

    Four products of the upper layer, and four of the next time step, read a hidden
    state of the lower one.
    """
    with pytest.raises(ValueError, match="'layer0' has 8 readers, .* more than 8 "):
        make(2, 3, [["embed", "layer0"], ["layer1", "decode"]], TWO, fused=False)


def residual(branches, last=None):
    """A value and `branches` of it are added in one group; the loss is in another.

    `last`: an operator of the first group that reads the sum, too, after all others.
    """
    with mx.AttrScope(ctx_group="a"):
        x = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3)
        total, *others = (mx.sym.tanh(mx.sym.FullyConnected(x, num_hidden=3))
                          for _ in range(branches))
        for branch in [*others, x]:
            total = total + branch
    with mx.AttrScope(ctx_group="b"):
        moved = mx.sym.FullyConnected(total, num_hidden=3)
    if last:
        with mx.AttrScope(ctx_group="a"):
            moved = moved + last(total)
    with mx.AttrScope(ctx_group="b"):
        return mx.sym.LinearRegressionOutput(moved, mx.sym.var("softmax_label"))


def gradients(symbol, place):
    shapes = {"data": (2, 3), "softmax_label": (2, 3)}
    rng, bound = numpy.random.RandomState(0), pipeline.bind(symbol, place, shapes)
    for w in bound.params.values():
        w[:] = mx.nd.array(rng.uniform(-1, 1, w.shape))
    bound.forward_backward(rng.rand(2, 3), rng.rand(2, 3))
    return [grad.asnumpy() for grad in bound.gradients().values()]


@pytest.mark.parametrize("branches, last, refused", [
    (6, None, False), (7, None, True), (6, mx.sym.BlockGrad, False),
    (7, mx.sym.BlockGrad, True)])
def test_a_sum_among_eight_readers_passes_on_a_gradient_of_another_device(
    branches, last, refused
):
    """As of a residual connection: all readers are on one device."""
    one, two = ({"a": TWO[0], "b": other} for other in (TWO[0], TWO[1]))
    found = gradients(residual(branches, last), one)
    refusal = pytest.raises(ValueError, match="8 readers, whose gradients come from")
    with refusal if refused else nullcontext():
        for a, b in zip(found, gradients(residual(branches, last), two)):
            numpy.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("cut", [1, 3])
def test_eight_readers_on_one_device_are_not(cut):
    parts, options = pipeline.split(lstm.groups(2), [cut]), {"fused": False}
    assert_equal_to_one_device(2, 3, parts, TWO, **options)


def test_parameters_gradients_and_work_are_where_they_were_placed():
    bound = make(2, 3, [["embed", "layer0"], ["layer1", "decode"]], TWO)
    X, y = batch(3)
    with timeline.record(TWO) as trace:
        bound.forward_backward(X, y)
    for name in bound.params:
        expected = TWO[0] if name.startswith(("embed", "l0")) else TWO[1]
        assert bound.params[name].ctx == bound.gradients()[name].ctx == expected
    products = [sum("Full" in e.name for e in trace.of(d)) for d in trace.devices]
    assert products == [2 * 2 * 3, 2 * 2 * 3 + 2]  # the decoder is on the second


def test_an_update_is_plain_gradient_descent():
    bound = make(1, 2, [lstm.groups(1)], ONE)
    before = {n: p.asnumpy() for n, p in bound.params.items()}
    bound.forward_backward(*batch(2))
    bound.update(lr=0.5, count=6)
    for name, grad in bound.gradients().items():
        expected = before[name] - 0.5 * grad.asnumpy() / 6
        numpy.testing.assert_allclose(bound.params[name].asnumpy(), expected, atol=1e-7)


def test_the_parameters_given_are_copied():
    params = lstm.init_params(
        lstm.lstm_unroll(1, 2, 5, H, V), lstm.input_shapes(1, 2, N, H))
    bound = make(1, 2, [lstm.groups(1)], ONE, params)
    params["embed_weight"][:] = 7
    assert bound.params["embed_weight"].asnumpy().max() <= 0.1


# Placements that cannot be


def test_groups_are_split_before_the_cuts():
    names = lstm.groups(2)
    assert pipeline.split(names, [1, 3]) == [
        ["embed"],
        ["layer0", "layer1"],
        ["decode"],
    ]
    assert pipeline.split(names, []) == [names]


@pytest.mark.parametrize("cuts", [[0], [4], [2, 2], [3, 1]])
def test_cuts_that_leave_a_part_empty_are_refused(cuts):
    with pytest.raises(ValueError, match="leave a part of the 4 groups empty"):
        pipeline.split(lstm.groups(2), cuts)


@pytest.mark.parametrize("call, message", [
    (lambda: make(2, 2, [["embed", "layer0"], ["decode"]], TWO),
     r"group 'layer1' has no device.*'layer0'"),
    (lambda: pipeline.placement([["embed", "layer0"], ["decode"]], ONE),
     r"2 parts for 1 devices: part 1, \['decode'\]"),
    (lambda: pipeline.placement([["embed"], ["embed", "layer0"]], TWO),
     "'embed' is placed twice, on .* and"),
    (lambda: pipeline.bind(mx.sym.exp(mx.sym.var("data")), {"embed": ONE[0]},
                           {"data": (2, 2)}),
     "node 'data' is in no group.*AttrScope"),
    (lambda: make(1, 2, [lstm.groups(1)], ONE, {"embed_weight": mx.nd.zeros((V, 5))}),
     r"params lack \['l0_i2h_weight', .* which the symbol needs"),
])
def test_what_cannot_be_placed_or_bound_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(mx.context, "num_gpus", lambda: 0)
    with pytest.raises(ValueError, match=r"there is no gpu\(1\): MXNet sees 0 GPUs"):
        make(1, 2, [lstm.groups(1)], [mx.gpu(1)])


# ---- What crosses between devices, counted from the graph ----

L, T, E = 4, 5, 8
HIDDEN = 4 * N * H  # bytes of a layer's output of one time step
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
])
@pytest.mark.parametrize("options", [{}, {"concat_decode": False}])
def test_a_hidden_state_crosses_per_step_once_and_its_gradient(
    parts, expected, options
):
    assert count(parts, **options) == expected


def test_the_gradients_of_four_products_cross_one_by_one():
    """They are added where the next time step reads; after the last step, above."""
    (only,) = count(CONTIGUOUS, fused=False)
    back = 4 * (T - 1) + 1
    assert only == (*TWO, T * HIDDEN, back * HIDDEN, T + back)


def test_the_device_of_a_joined_decoder_adds_up_the_gradients():
    """What the next time step finds goes there, and the sum comes back."""
    parts = pipeline.split(lstm.groups(L), [5])
    assert count(parts) == [
        (*TWO, T * HIDDEN, T * HIDDEN, 2 * T),
        (*TWO[::-1], 0, (T - 1) * HIDDEN, T - 1),
    ]
    (only,) = count(parts, concat_decode=False)
    assert only == (*TWO, T * HIDDEN, T * HIDDEN, 2 * T)


def test_embedding_and_decoder_cross_with_their_own_sizes():
    (only,) = count(pipeline.split(lstm.groups(L), [1]))
    assert only.forward == T * 4 * N * E


def test_labels_have_no_gradient_that_would_cross_back():
    symbol, shapes = lstm.lstm_unroll(1, T, E, H, V), lstm.input_shapes(1, T, N, H)
    group2ctx = pipeline.placement([["embed", "layer0"], ["decode"]], TWO)
    before = graph.crossings(symbol, group2ctx, shapes)
    # The label arrives on the first device, and its graph cannot tell.
    moved = lstm.lstm_unroll(1, T, E, H, V)
    moved.get_internals()["softmax_label"]._set_attr(__ctx_group__="embed")
    after, _ = graph.crossings(moved, group2ctx, shapes)
    assert after.forward == before[0].forward + 4 * T * N
    assert after.backward == before[0].backward
    assert after.copies == before[0].copies + 1


@settings(max_examples=25)
@given(placements(), st.sampled_from([1, 2, 7, 9]), st.booleans(), st.booleans())
def test_any_placement_has_the_copies_that_are_counted(placed, steps, joined, fused):
    num_layers, parts = placed
    symbol = lstm.lstm_unroll(
        num_layers, steps, E, H, V, concat_decode=joined, fused=fused)
    shapes = lstm.input_shapes(num_layers, steps, N, H)
    group2ctx = pipeline.placement(parts, FOUR)
    needed = {n: "null" if n in shapes else "write" for n in symbol.list_arguments()}
    bound = symbol.simple_bind(
        ctx=FOUR[0], group2ctx=group2ctx, grad_req=needed, **shapes)
    counted = sum(c.copies for c in graph.crossings(symbol, group2ctx, shapes))
    assert bound.debug_str().count("Op:_CrossDeviceCopy") == counted


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
