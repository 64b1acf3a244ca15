"""Experts on several devices compute what all of them compute on one."""

import d2l_ext  # noqa: F401, I001

from itertools import chain

import numpy
import pytest
from held_devices import TWO, held
from mxnet import autograd, np, npx

from d2l_ext.data_parallel import costs, traffic
from d2l_ext.data_parallel.diagnose import blocking_calls
from d2l_ext.devices import try_all_devices
from d2l_ext.tensor_parallel import experts as ep

npx.set_np()

#: Largest difference, in units of the largest element.
TOLERANCE = {"float64": 1e-12, "float32": 1e-6}
D, H = 6, 10


def layer(E, dtype="float64", seed=0):
    """A router and E experts, as NumPy arrays."""
    rng = numpy.random.RandomState(seed)
    shapes = (D, H), (H,), (H, D), (D,)
    blocks = [[rng.randn(*s).astype(dtype) for s in shapes] for _ in range(E)]
    return rng.randn(D, E).astype(dtype), blocks


def batches(sizes, dtype="float64"):
    """For each size, tokens and a gradient of their outputs."""
    rng = numpy.random.RandomState(1)
    return [rng.randn(2, n, D).astype(dtype) for n in sizes]


def kept(P, top, most):
    """Choices that fit, (n, E) of zeros and ones: first choices first."""
    mask, ranks = numpy.zeros(P.shape), (-P).argsort(axis=1, kind="stable")
    for c in range(top):
        for token, expert in enumerate(ranks[:, c]):
            mask[token, expert] = mask[:, expert].sum() < most
    return mask, numpy.eye(P.shape[1])[ranks[:, :top]].mean(axis=(0, 1))


def on_one_device(data, W, blocks, top, factor, balance):
    """All experts on all tokens, masked, by autograd: outputs and gradients."""
    dtype, E = W.dtype, W.shape[1]
    Xs = [np.array(X, dtype=dtype) for X, _ in data]
    W, *flat = (np.array(p, dtype=dtype) for p in (W, *chain(*blocks)))
    for x in (*Xs, W, *flat):
        x.attach_grad()
    Ys, loss = [], np.zeros((), dtype=dtype)
    with autograd.record():
        for X, (_, dY) in zip(Xs, data):
            P = npx.softmax(np.dot(X, W))
            most = numpy.inf if factor is None else -(-factor * top * len(X) // E)
            mask, shares = kept(P.asnumpy(), top, most)
            G = P * np.array(mask, dtype=dtype)
            Y = np.zeros_like(X)
            for e in range(E):
                W1, b1, W2, b2 = flat[4 * e : 4 * e + 4]
                hidden = npx.relu(np.dot(X, W1) + b1)
                Y = Y + G[:, e : e + 1] * (np.dot(hidden, W2) + b2)
            even = (np.array(shares, dtype=dtype) * P.mean(axis=0)).sum() * E
            loss = loss + (Y * np.array(dY, dtype=dtype)).sum() + balance * even
            Ys.append(Y)
    loss.backward()
    gradients = [x.grad for x in (*Xs, W, *flat)]
    return [x.asnumpy() for x in (*Ys, *gradients)]


def on_devices(data, W, blocks, top, factor, balance, devices):
    Xs, dYs = (
        [np.array(x, dtype=x.dtype, ctx=d) for x, d in zip(xs, devices)]
        for xs in zip(*data)
    )
    routers = [np.array(W, dtype=W.dtype, ctx=d) for d in devices]
    experts = ep.split_experts(blocks, devices)
    Ys, saved = ep.forward(Xs, routers, experts, top, factor)
    dXs, dWs, gradients = ep.backward(dYs, saved, routers, experts, balance)
    assert len({dW.asnumpy().tobytes() for dW in dWs}) == 1
    assert [g.ctx for (g, *_) in gradients] == [block[0].ctx for block in experts]
    found = [x.asnumpy() for x in (*Ys, *dXs, dWs[-1], *chain(*gradients))]
    return found, saved


def assert_close(found, right):
    assert len(found) == len(right)
    for x, expected in zip(found, right):
        assert x.shape == expected.shape and x.dtype == expected.dtype
        assert abs(x - expected).max() <= TOLERANCE[str(x.dtype)] * abs(expected).max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("top, factor", [(1, None), (1, 1.0), (2, 1.0), (2, 1.5)])
@pytest.mark.parametrize("k, E", [(1, 4), (2, 4), (2, 5), (3, 4), (4, 4), (4, 7)])
def test_output_and_every_gradient_equal_those_of_one_device(k, E, top, factor, dtype):
    data, (W, blocks) = batches([24, 17, 9, 30][:k], dtype), layer(E, dtype)
    how = data, W, blocks, top, factor, 0.3
    found, saved = on_devices(*how, try_all_devices(k))
    assert_close(found, on_one_device(*how))
    if factor in (None, 1.0):
        dropped = sum((p.wanted - p.counts).sum() for p in saved.routings)
        assert (dropped > 0) == (factor == 1.0)


def test_an_expert_whom_nobody_chooses_has_no_gradient():
    W, blocks = layer(3)
    W[0] += 100 * numpy.array([1.0, 0.0, -1.0])
    data = batches([8, 8])
    for X, _ in data:
        X[:, 0] = 1  # everyone wants expert 0
    how = data, W, blocks, 1, None, 0.0
    found, saved = on_devices(*how, try_all_devices(2))
    assert [len(x) for x in saved.inputs] == [16, 0, 0]
    assert_close(found, on_one_device(*how))
    assert not any(g.any() for g in found[-8:])


def test_eight_tokens_are_planned_as_by_hand():
    #                   first choices        second choices
    choice = numpy.array([[0, 0, 1, 0, 2, 0, 1, 0], [1, 2, 0, 1, 0, 2, 2, 1]]).T
    first = ep.assign(choice[:, :1], 3, most=3)
    assert first.tokens.tolist() == [0, 1, 3, 2, 6, 4]  # 5 and 7 come too late for 0
    assert first.experts.tolist() == [0, 0, 0, 1, 1, 2]
    assert first.rows[:, 0].tolist() == [0, 1, 3, 2, 5, 6, 4, 6]  # row 6 is none
    assert (first.wanted.tolist(), first.counts.tolist()) == ([5, 2, 1], [3, 2, 1])
    both = ep.assign(choice, 3, most=3)
    # Expert 1 has one place left for second choices, expert 2 two, expert 0 none.
    assert both.tokens.tolist() == [0, 1, 3, 2, 6, 0, 4, 1, 5]
    assert both.rows[:, 1].tolist() == [5, 7, 9, 9, 9, 8, 9, 9]


def test_capacity_is_rounded_up():
    assert ep.capacity(8, 3, 1.0) == 3 and ep.capacity(8, 4, 1.25, top=2) == 5
    assert ep.capacity(100, 10, 1.1) == 11  # 1.1 · 10 is a little more than 11
    assert ep.capacity(8, 4, None, top=2) == 16


@pytest.mark.parametrize("k, E, top", [(1, 4, 1), (2, 5, 1), (3, 4, 2), (4, 4, 2)])
def test_each_pass_sends_rows_there_and_back_and_backward_sums_a_router(k, E, top):
    data, (W, blocks), devices = batches([12] * k), layer(E), try_all_devices(k)
    with traffic.count(devices) as moved:
        _, saved = on_devices(data, W, blocks, top, 1.0, 0.0, devices)
    homes = numpy.repeat(range(k), numpy.diff(traffic.cuts(E, k)))
    away = numpy.zeros((k, k), int)  # rows of device i for experts on device j
    for i, routing in enumerate(saved.routings):
        away[i] = numpy.bincount(homes[routing.experts], minlength=k)
    numpy.fill_diagonal(away, 0)
    there_and_back = (away.sum(axis=1) + away.sum(axis=0)) * D * 8
    router = costs.expected("naive", k, W.nbytes, itemsize=8)
    assert moved.sent == (2 * there_and_back + router.sent).tolist()
    assert moved.received == (2 * there_and_back + router.received).tolist()
    assert moved.steps == 4 * (k - 1) + router.steps


def test_the_balance_loss_is_1_when_even_and_E_when_one_expert_has_all():
    even = np.full((8, 4), 0.25)
    one = numpy.eye(4)[[2] * 8]
    turns = numpy.arange(8)[:, None] % 4
    assert float(ep.balance_loss(even, ep.assign(turns, 4, 8))) == 1
    routing = ep.assign(ep.top_experts(one), 4, 8)
    assert float(ep.balance_loss(np.array(one), routing)) == 4


@pytest.mark.parametrize("call, message", [
    (lambda: ep.split_experts(layer(3)[1], try_all_devices(4)),
     "3 experts cannot be split over 4 devices: use 1 to 3"),
    (lambda: ep.top_experts(numpy.ones((5, 4)), 5), "top=5 of 4 experts"),
    (lambda: ep.top_experts(numpy.ones((5, 4)), 0), "top=0 of 4 experts"),
    (lambda: ep.capacity(8, 4, 0.0), "factor=0.0: give a capacity factor above 0"),
    (lambda: ep.forward([np.ones((5, D))], [np.ones((D, 4))], layer(3)[1]),
     "the router is for 4 experts, not 3"),
])
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_forward_waits_once_for_each_devices_choices_and_backward_for_nothing():
    data, (W, blocks) = batches([12, 12], "float32"), layer(4, "float32")
    Xs, dYs = ([np.array(x, ctx=d) for x, d in zip(xs, TWO)] for xs in zip(*data))
    routers, experts = [np.array(W, ctx=d) for d in TWO], ep.split_experts(blocks, TWO)
    with blocking_calls() as waits:
        _, saved = ep.forward(Xs, routers, experts)
    assert sum("P.asnumpy()" in wait.line for wait in waits) == 2
    assert all("np.array(" in wait.line for wait in waits if "P." not in wait.line)
    with held(*TWO):
        ep.backward(dYs, saved, routers, experts, balance=0.1)
