"""The LSTM by hand: MXNet's own cell in every element, eight products per step."""

import d2l_ext  # noqa: F401, I001  (before MXNet)
import mxnet as mx
import numpy
import pytest
from mxnet.gluon import rnn

from d2l_ext.pipeline import lstm
from d2l_ext import pipeline

N, D, H = 3, 5, 4  # batch, inputs, hidden units
SHAPES = {"i2h_weight": (4 * H, D), "i2h_bias": (4 * H,),
          "h2h_weight": (4 * H, H), "h2h_bias": (4 * H,)}


def random(*shape, seed=0):
    return mx.nd.array(numpy.random.RandomState(seed).uniform(-1, 1, shape))


def run_cell(fused):
    """h and c of one step, and the gradient of their sum by every argument."""
    names = ["x", "h", "c", *lstm.Weights._fields]
    x, h, c, *weights = (mx.sym.var(name) for name in names)
    symbol = mx.sym.Group(
        lstm.lstm_cell(x, h, c, lstm.Weights(*weights), H, "cell", fused)
    )
    shapes = {"x": (N, D), "h": (N, H), "c": (N, H), **SHAPES}
    args = {n: random(*shapes[n], seed=i) for i, n in enumerate(names)}
    grads = {n: mx.nd.zeros(shapes[n]) for n in names}
    executor = symbol.bind(mx.cpu(0), args, grads)
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones((N, H))] * 2)
    return args, [out.asnumpy() for out in executor.outputs], grads


@pytest.mark.parametrize("fused", [True, False])
def test_the_cell_equals_gluons_in_every_element(fused, without_numpy_semantics):
    args, (h, c), grads = run_cell(fused)
    cell = rnn.LSTMCell(H, input_size=D)
    cell.initialize()
    for name in SHAPES:
        getattr(cell, name).set_data(args[name])
    for name in "xhc":
        args[name].attach_grad()
    with mx.autograd.record():
        _, (h2, c2) = cell(args["x"], [args["h"], args["c"]])
        total = h2.sum() + c2.sum()
    total.backward()
    numpy.testing.assert_allclose(h, h2.asnumpy(), rtol=0, atol=1e-6)
    numpy.testing.assert_allclose(c, c2.asnumpy(), rtol=0, atol=1e-6)
    for name in grads:
        theirs = args[name].grad if name in "xhc" else getattr(cell, name).grad()
        ours = grads[name].asnumpy()
        numpy.testing.assert_allclose(ours, theirs.asnumpy(), rtol=0, atol=1e-5)


def test_the_unrolled_layers_equal_mxnets_symbolic_cells():
    steps = 5
    own = lstm.lstm_unroll(2, steps, D, H, 7)
    hidden = own.get_internals()["concat_output"]
    stack = mx.rnn.SequentialRNNCell()
    for i in range(2):
        stack.add(mx.rnn.LSTMCell(H, prefix=f"l{i}_", forget_bias=0.0))
    vectors = mx.sym.Embedding(mx.sym.var("data"), mx.sym.var("embed_weight"),
                               input_dim=7, output_dim=D)
    states = [mx.sym.var(f"l{i}_init_{s}") for i in range(2) for s in "hc"]
    theirs, _ = stack.unroll(steps, vectors, begin_state=states, layout="TNC",
                             merge_outputs=True)
    shapes = lstm.input_shapes(2, steps, N, H)
    params = lstm.init_params(own, shapes, scale=0.5)
    X = mx.nd.array(numpy.random.RandomState(1).randint(0, 7, (steps, N)))
    results = []
    for symbol in (hidden, mx.sym.reshape(theirs, shape=(-1, H))):
        names = symbol.list_arguments()
        values = {n: params.get(n, mx.nd.zeros(shapes.get(n, (1,)))) for n in names}
        executor = symbol.bind(mx.cpu(0), {**values, "data": X})
        results.append(executor.forward()[0].asnumpy())
    numpy.testing.assert_allclose(*results, rtol=0, atol=1e-6)


@pytest.mark.parametrize("fused", [True, False])
def test_a_layer_takes_eight_products_per_step(fused):
    for num_layers, steps in [(1, 1), (2, 3), (3, 5)]:
        symbol = lstm.lstm_unroll(num_layers, steps, D, H, 7, fused=fused)
        per_layer = lstm.count_products(symbol, H)
        assert per_layer == {f"layer{i}": 8 * steps for i in range(num_layers)}


def trained(symbol, steps, X, y, params=None):
    shapes = lstm.input_shapes(2, steps, N, H)
    group2ctx = pipeline.placement([lstm.groups(2)], [mx.cpu(0)])
    params = params or lstm.init_params(symbol, shapes, scale=0.5)
    bound = pipeline.bind(symbol, group2ctx, shapes, params)
    bound.forward_backward(X, y)
    grads = {n: g.asnumpy() for n, g in bound.gradients().items()}
    return grads, lstm.perplexity(bound.outputs, y)


def labelled(steps, seed=1):
    rng = numpy.random.RandomState(seed)
    return rng.randint(0, 7, (2, steps, N))


@pytest.mark.parametrize("variant", [{"fused": False}, {"concat_decode": False}])
@pytest.mark.parametrize("steps", [1, 9])
def test_variants_of_the_graph_have_the_same_gradients(steps, variant):
    X, y = labelled(steps)
    ours, loss = trained(lstm.lstm_unroll(2, steps, D, H, 7), steps, X, y)
    theirs, loss2 = trained(lstm.lstm_unroll(2, steps, D, H, 7, **variant), steps, X, y)
    assert loss == pytest.approx(loss2, rel=1e-6)
    assert ours.keys() == theirs.keys()
    for name, grad in ours.items():
        numpy.testing.assert_allclose(grad, theirs[name], rtol=0, atol=2e-6)


def test_the_gradient_is_that_of_the_summed_cross_entropy():
    steps, step = 3, 1e-2
    X, y = labelled(steps)
    symbol = lstm.lstm_unroll(2, steps, D, H, 7)
    params = lstm.init_params(symbol, lstm.input_shapes(2, steps, N, H), scale=0.5)
    grads, _ = trained(symbol, steps, X, y, params)
    for name in params:  # a central difference along the gradient itself
        direction = grads[name] / numpy.linalg.norm(grads[name])
        losses = []
        for sign in (1, -1):
            moved = mx.nd.array(params[name].asnumpy() + sign * step * direction)
            _, found = trained(symbol, steps, X, y, {**params, name: moved})
            losses.append(numpy.log(found) * steps * N)
        slope = (losses[0] - losses[1]) / (2 * step)
        assert slope == pytest.approx(
            numpy.linalg.norm(grads[name]), rel=1e-2, abs=3e-4
        ), name


def test_labels_to_ignore_have_no_gradient():
    X, y = labelled(4)
    padded = numpy.where(numpy.arange(4)[:, None] < 3, y, -1)
    symbol = lstm.lstm_unroll(2, 4, D, H, 7, ignore_label=-1)
    ours, _ = trained(symbol, 4, X, padded)
    short, _ = trained(lstm.lstm_unroll(2, 3, D, H, 7), 3, X[:3], y[:3])
    for name, grad in short.items():
        numpy.testing.assert_allclose(ours[name], grad, rtol=0, atol=2e-6)


def test_parameters_are_the_same_for_a_seed_and_keep_to_the_scale():
    symbol, shapes = lstm.lstm_unroll(1, 2, D, H, 7), lstm.input_shapes(1, 2, N, H)
    first, again, other = (
        lstm.init_params(symbol, shapes, 0.3, seed) for seed in (1, 1, 2)
    )
    assert first.keys() == set(symbol.list_arguments()) - set(shapes)
    for name in first:
        assert (first[name] == again[name]).asnumpy().all()
        assert (first[name] != other[name]).asnumpy().any()
        assert abs(first[name].asnumpy()).max() <= 0.3


def test_perplexity_is_e_to_the_mean_loss_of_the_labels_that_are_not_below_0():
    steps = [mx.nd.array([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]),
             mx.nd.array([[0.25, 0.5, 0.25], [0.375, 0.5, 0.125]])]
    labels = [[0, -1], [2, 1]]  # shares 1/2, none, 1/4, 1/2
    assert lstm.perplexity(steps, labels) == pytest.approx(16 ** (1 / 3))
