"""However its groups are placed, a pipeline gives what one device gives."""

import d2l_ext  # noqa: F401, I001  (before MXNet)
import mxnet as mx
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2l_ext.pipeline import lstm
from d2l_ext import pipeline
from d2l_ext.devices import timeline
from d2l_ext.devices import try_all_devices

H, N, V = 6, 3, 11
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


# MXNet sums the gradients of a shared parameter in another way from eight on.
@pytest.mark.parametrize("steps", [1, 7, 8, 9, 35])
@pytest.mark.parametrize("concat_decode", [True, False])
def test_two_and_four_devices_give_the_bits_of_one(steps, concat_decode):
    for cuts, devices in ([3], TWO), ([2, 3, 4], FOUR):
        parts = pipeline.split(lstm.groups(4), cuts)
        assert_equal_to_one_device(
            4, steps, parts, devices, concat_decode=concat_decode
        )


@st.composite
def placements(draw):
    """Every group on any of four devices, neighbours or not; some stay empty."""
    num_layers = draw(st.integers(1, 3))
    parts = [[], [], [], []]
    for name in lstm.groups(num_layers):
        parts[draw(st.integers(0, 3))].append(name)
    return num_layers, parts


@settings(max_examples=15)
@given(placements(), st.sampled_from([1, 2, 7, 8, 9]), st.booleans())
def test_any_placement_gives_the_bits_of_one_device(placed, steps, concat_decode):
    num_layers, parts = placed
    assert_equal_to_one_device(
        num_layers, steps, parts, FOUR, concat_decode=concat_decode
    )


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


def test_training_on_two_devices_is_training_on_one():
    """The same bits after five updates."""
    parts = [["embed", "layer0"], ["layer1", "decode"]]
    both = make(2, 9, [lstm.groups(2)], ONE), make(2, 9, parts, TWO)
    for bound in both:
        for seed in range(5):
            X, y = batch(9, seed)
            bound.forward_backward(X, y)
            bound.update(lr=0.5, count=y.size)
    one, two = ({n: p.asnumpy() for n, p in b.params.items()} for b in both)
    assert all((one[name] == two[name]).all() for name in one)


def test_an_update_is_plain_gradient_descent():
    bound = make(1, 2, [lstm.groups(1)], ONE)
    before = {n: p.asnumpy() for n, p in bound.params.items()}
    bound.forward_backward(*batch(2))
    bound.update(lr=0.5, count=6)
    for name, grad in bound.gradients().items():
        expected = before[name] - 0.5 * grad.asnumpy() / 6
        numpy.testing.assert_allclose(bound.params[name].asnumpy(), expected, atol=1e-7)


def test_the_parameters_given_are_copied():
    symbol, shapes = lstm.lstm_unroll(1, 2, 5, H, V), lstm.input_shapes(1, 2, N, H)
    params = lstm.init_params(symbol, shapes)
    group2ctx = pipeline.placement([lstm.groups(1)], ONE)
    bound = pipeline.bind(symbol, group2ctx, shapes, params)
    params["embed_weight"][:] = 7
    assert bound.params["embed_weight"].asnumpy().max() <= 0.1


def test_a_shorter_pipeline_can_share_parameters_and_gradients():
    long = make(1, 4, [lstm.groups(1)], ONE)
    short = pipeline.bind(lstm.lstm_unroll(1, 2, 5, H, V), long.group2ctx,
                          lstm.input_shapes(1, 2, N, H), shared=long)  # fmt: skip
    short.forward_backward(*batch(2))
    short.update(lr=1.0)
    for name in long.params:
        for ours, theirs in (
            (long.params[name], short.params[name]),
            (long.gradients()[name], short.gradients()[name]),
        ):
            assert ours.asnumpy().any() and (ours == theirs).asnumpy().all(), name


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


def test_a_layer_without_a_device_is_refused_by_name():
    with pytest.raises(ValueError, match=r"group 'layer1' has no device.*'layer0'"):
        make(2, 2, [["embed", "layer0"], ["decode"]], TWO)


def test_more_parts_than_devices_are_refused():
    with pytest.raises(
        ValueError, match=r"2 parts for 1 devices: part 1, \['decode'\]"
    ):
        pipeline.placement([["embed", "layer0"], ["decode"]], ONE)


def test_a_group_in_two_places_is_refused():
    with pytest.raises(ValueError, match=r"'embed' is placed twice, on .* and"):
        pipeline.placement([["embed"], ["embed", "layer0"]], TWO)


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(mx.context, "num_gpus", lambda: 0)
    group2ctx = {name: mx.gpu(1) for name in lstm.groups(1)}
    with pytest.raises(ValueError, match=r"there is no gpu\(1\): MXNet sees 0 GPUs"):
        pipeline.bind(lstm.lstm_unroll(1, 2, 5, H, V), group2ctx,
                      lstm.input_shapes(1, 2, N, H))  # fmt: skip


def test_a_node_without_a_group_is_refused_by_name():
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="lost")
    with pytest.raises(ValueError, match="node 'data' is in no group.*AttrScope"):
        pipeline.bind(symbol, {"embed": ONE[0]}, {"data": (2, 2)})


def test_parameters_that_are_missing_are_named():
    symbol, shapes = lstm.lstm_unroll(1, 2, 5, H, V), lstm.input_shapes(1, 2, N, H)
    params = lstm.init_params(symbol, shapes)
    del params["l0_i2h_bias"]
    with pytest.raises(ValueError, match=r"params lack \['l0_i2h_bias'\]"):
        pipeline.bind(symbol, pipeline.placement([lstm.groups(1)], ONE), shapes, params)
