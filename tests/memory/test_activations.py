"""Memory: what is predicted is counted, and what spares memory changes no gradient."""

import d2l_ext  # noqa: F401, I001
from statistics import mode

import mxnet as mx
import numpy
import pytest
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn

from d2l_ext.data_parallel.diagnose import blocking_calls
from d2l_ext.data_parallel.minibatch import split_batch
from d2l_ext.devices import storage, try_all_devices
from d2l_ext.memory import activations
from d2l_ext.memory.activations import accumulate, pieces

npx.set_np()
L2 = gluon.loss.L2Loss()


def network(layers, devices, width=16):
    net = nn.HybridSequential()
    for _ in range(layers):
        net.add(nn.Dense(width, activation="relu", in_units=width))
    mx.random.seed(0)
    net.initialize(mx.init.Xavier(), ctx=devices)
    return net


def random(*shape):
    return np.array(numpy.random.RandomState(0).randn(*shape), dtype="float32")


def test_activations_are_what_stays_after_forward():
    """What a second forward adds; at times the engine's scratch space grows, too."""
    devices, added = try_all_devices(1), []
    net, X = network(5, devices), random(64, 16)
    for _ in range(9):
        held, found = [], []
        npx.waitall()
        for kept in (1, 2):
            with storage.record(devices) as memory:
                for _ in range(kept):
                    with autograd.record():
                        held.append(net(X))
                    held[-1].wait_to_read()
            found.append(memory.held["cpu/0"])
            held.clear()
        added.append(found[1] - found[0])
    layer = 64 * 16 * 4
    assert activations.nbytes(net, X) == [layer] * 5
    assert mode(added) == 5 * layer


# ---- recomputation ----


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("every", [None, 1, 3, 7, 9])
def test_recomputed_gradients_are_the_plain_ones_bit_by_bit(every, k):
    devices = try_all_devices(k)
    net, X = network(7, devices), random(10, 16)
    shards = list(zip(*split_batch(X, X * 2, devices)))
    with autograd.record():
        plain = [L2(net(X), y).sum() for X, y in shards]
    autograd.backward(plain)
    params = list(net.collect_params().values())
    expected = [g.asnumpy() for p in params for g in p.list_grad()]
    net.collect_params().zero_grad()
    losses = activations.backward(activations.segments(net, every), shards, L2)
    found = [g.asnumpy() for p in params for g in p.list_grad()]
    assert all((a == b).all() for a, b in zip(found, expected))
    assert [float(x) for x in losses] == [float(x) for x in plain]


def test_recomputation_runs_each_layer_twice_and_waits_for_every_part_but_the_last():
    calls, devices = [], try_all_devices(2)
    weights = {device: np.ones(3, ctx=device) for device in devices}
    for w in weights.values():
        w.attach_grad()
    layers = [lambda X, i=i: calls.append(i) or X * weights[X.ctx] for i in range(5)]
    shards = list(zip(*split_batch(random(4, 3), random(4, 3), devices)))
    with blocking_calls() as waits:
        activations.backward(activations.segments(layers, 2), shards, L2)
    # Forward without the last part, then the parts from the last on, on two devices.
    assert calls == [0, 1, 0, 1, 2, 3, 2, 3, 4, 4, 2, 3, 2, 3, 0, 1, 0, 1]
    assert [wait.line for wait in waits] == ["head.wait_to_read()"] * 2 * 2


def test_what_is_recomputed_draws_the_same_dropout():
    """The loss is linear in each layer, so weight times gradient adds up to it."""
    layers = [nn.Dense(8, use_bias=False, in_units=8), nn.Dropout(0.5),
              nn.Dense(8, use_bias=False, in_units=8)]
    for layer in layers:
        layer.initialize(mx.init.Constant(1), ctx=try_all_devices(1))
    X, parts = random(4, 8), activations.segments(layers, 1)

    def found(before):
        shards = [(X, None)]
        (loss,) = activations.backward(parts, shards, lambda out, y: out, before)
        return float(loss), [float(d.weight.grad().sum()) for d in layers[::2]]

    loss, sums = found(lambda number: mx.random.seed(number + 5))
    assert numpy.allclose(sums, loss, rtol=1e-4)
    loss, sums = found(lambda number: None)
    assert abs(sums[0] - loss) > 1e-2


def test_sixteen_blocks_need_half_of_the_memory():
    devices, X = try_all_devices(1), random(256, 32)
    net = nn.HybridSequential()
    for _ in range(16):
        net.add(nn.HybridSequential())
        net[-1].add(nn.Dense(128, activation="relu"), nn.Dense(32))
    net.initialize(ctx=devices)
    net(X)
    rounds = []  # in some of which the engine's scratch space grows
    for _ in range(4):
        peaks = []
        for every in (16, None, 2):
            with storage.record(devices) as memory:
                activations.backward(activations.segments(net, every), [(X, X)], L2)
            peaks.append(memory.peak["cpu/0"])
        rounds.append(peaks)
    peaks = [min(column) for column in zip(*rounds)]
    assert peaks[1] < 0.6 * peaks[0] and peaks[2] < 0.5 * peaks[0]


def test_segments_and_what_recomputation_refuses():
    assert activations.segments(range(7)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(map(len, activations.segments(range(16)))) == [4] * 4
    with pytest.raises(ValueError, match="every must be a whole number of .* 1, not 0"):
        activations.segments(range(7), 0)
    with pytest.raises(ValueError, match="batchnorm.* running averages"):
        activations.backward([[nn.BatchNorm()]], [], L2)


# ---- accumulation ----


@pytest.mark.parametrize("dtype, most", [("float32", 1e-6), ("float64", 1e-12)])
def test_accumulated_gradients_are_those_of_the_whole_batch(dtype, most):
    rng = numpy.random.RandomState(0)
    X, y, *params = (np.array(rng.randn(*shape), dtype=dtype)
                     for shape in ((37, 12), (37, 3), (12, 8), (8, 3)))

    def loss(X, y):
        return (np.dot(np.tanh(np.dot(X, params[0])), params[1]) - y) ** 2

    for p in params:
        p.attach_grad()
    with autograd.record():
        mean = loss(X, y).mean()
    mean.backward()
    whole = [p.grad.asnumpy() for p in params]
    cuts = [[0, 37], [0, 1, 37], [0, 5, 9, 10, 11, 20, 30, 36, 37]]
    parts = [[(X[a:b], y[a:b]) for a, b in zip(cut, cut[1:])] for cut in cuts]
    for part in parts + [pieces(X, y, n) for n in range(1, 9)]:
        found = accumulate(part, params, loss)
        assert abs(float(found) - float(mean)) < most * 10
        for p, g in zip(params, whole):
            assert abs(p.grad.asnumpy() - g).max() < most * abs(g).max()


def test_accumulation_waits_for_every_piece_but_the_last():
    X, w, b = random(6, 3), random(2, 3), random(2, 3)
    with blocking_calls() as waits:
        accumulate(pieces(X, X, 3), [w, b], lambda X, y: (X * w + b - y) ** 2)
    assert [wait.line for wait in waits] == ["grad.wait_to_read()"] * 2 * 2


def test_eight_pieces_need_an_eighth_of_the_activations():
    device, layers = try_all_devices(1)[0], [random(64, 64) for _ in range(8)]
    X = random(1024, 64)

    def loss(X, y):
        for weight in layers:
            X = np.tanh(np.dot(X, weight))
        return (X - y) ** 2

    def peak(number):
        parts = pieces(X, X, number)
        npx.waitall()
        with storage.record([device]) as memory:
            accumulate(parts, layers, loss)
        return memory.peak["cpu/0"] - 8 * layers[0].size * 4  # without the gradients

    assert peak(8) * 8 == pytest.approx(peak(1), rel=0.05)


@pytest.mark.parametrize("good, error", [(0, ValueError), (1, ZeroDivisionError)])
def test_after_an_error_in_accumulation_backward_overwrites_again(good, error):
    w, X = np.ones(3), np.ones((2, 3))
    with pytest.raises(error):
        accumulate([(X, 1), (X, 0)][: 2 * good], [w], lambda X, y: X * w * (1 // y))
    for _ in range(2):
        with autograd.record():
            loss = (2 * w).sum()
        loss.backward()
    assert w.grad.tolist() == [2, 2, 2]


def test_accumulation_refuses_what_it_cannot_cut_or_divide():
    X = random(3, 2)
    with pytest.raises(ValueError, match="3 examples cannot be cut into 4 pieces: use"):
        pieces(X, X, 4)
    with pytest.raises(ValueError, match="number of pieces must be .* not 0"):
        pieces(X, X, 0)
    with pytest.raises(ValueError, match="X has 3 examples and y has 2"):
        pieces(X, X[:2], 1)
    with pytest.raises(ValueError, match="no losses"):
        accumulate([], [X], L2)
