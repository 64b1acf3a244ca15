"""The same step in three frameworks gives the same weights, and a peer that is missing
or fails says so."""

import math
import sys

import numpy
import pytest

from benchmarks.scale.rosetta import compare, mxnet_steps, peers, problems
from bookkit import stored

BAR = 1e-5
TECHNIQUES = sorted(compare.TECHNIQUES)
missing = peers.why_not()


def params_of(problem):
    count = problems.count(problem)
    return [problem[f"p{i}"].astype("float64") for i in range(count)]


def numpy_step(problem, relu_last):
    """One step through dense layers with ReLU between, in float64, by hand."""
    params, X = params_of(problem), problem["X"].astype("float64")
    inputs, outs = [X], []
    for i, (W, b) in enumerate(zip(params[::2], params[1::2])):
        out = inputs[-1] @ W + b
        outs.append(out)
        is_last = 2 * i + 2 == len(params)
        inputs.append(out if is_last and not relu_last else numpy.maximum(out, 0))
    error, step, after = inputs[-1] - problem["y"], float(problem["lr"]) / len(X), []
    for i in reversed(range(len(outs))):
        if relu_last or i < len(outs) - 1:
            error = error * (outs[i] > 0)
        W, b = params[2 * i], params[2 * i + 1]
        after = [W - step * inputs[i].T @ error, b - step * error.sum(0), *after]
        error = error @ W.T
    return after


def test_one_device_two_devices_and_gluon_take_the_same_step():
    problem = problems.lenet()
    weights = mxnet_steps.scratch(problem)
    one = mxnet_steps.scratch(problem, num_devices=1)
    assert peers.largest_difference(weights, one) < BAR
    assert peers.largest_difference(weights, mxnet_steps.trainer(problem)) < BAR


def test_the_pipelines_step_is_the_one_computed_by_hand():
    problem = problems.blocks()
    by_hand = numpy_step(problem, relu_last=True)
    assert peers.largest_difference(by_hand, mxnet_steps.pipeline(problem)) < BAR


def test_the_divided_layers_step_is_the_one_computed_by_hand():
    problem = problems.block()
    by_hand = numpy_step(problem, relu_last=False)
    assert peers.largest_difference(by_hand, mxnet_steps.tensor_split(problem)) < BAR


def block_by_numpy(X, params, heads):
    """The block's output in float64, a head and a sequence after another."""

    def norm(x, gain, shift):
        away = x - x.mean(-1, keepdims=True)
        size = numpy.sqrt((away**2).mean(-1, keepdims=True) + 1e-5)
        return away / size * gain + shift

    (T, batch, width), (qkv, out), (up, down) = X.shape, params[2:4], params[6:]
    mixed, d = numpy.empty_like(X), width // heads
    projected = norm(X, *params[:2]) @ qkv
    for b, head in numpy.ndindex(batch, heads):
        own = projected[:, b, 3 * d * head : 3 * d * (head + 1)]
        queries, keys, values = numpy.split(own, 3, axis=1)
        for t in range(T):
            shares = numpy.exp(keys[: t + 1] @ queries[t] / d**0.5)
            mixed[t, b, d * head : d * (head + 1)] = (
                shares @ values[: t + 1] / shares.sum())
    X = X + mixed @ out
    hidden = norm(X, *params[4:6]) @ up
    erf = numpy.vectorize(math.erf)
    return X + (hidden * (1 + erf(hidden / 2**0.5)) / 2) @ down


def test_the_block_over_heads_is_the_one_computed_by_hand():
    """The output; and each gradient, along a direction, by the loss on both sides."""
    problem, rng = problems.heads(), numpy.random.default_rng(1)
    arrays = [problem["X"].astype("float64"), *params_of(problem)]
    found = mxnet_steps.heads(problem)
    after, out, gradients = found[:8], found[8], found[9:]

    def outcome(arrays):
        return block_by_numpy(arrays[0], arrays[1:], int(problem["heads"]))

    def loss(arrays):
        return ((outcome(arrays) - problem["y"]) ** 2).sum(-1).mean() / 2

    assert peers.largest_difference([outcome(arrays)], [out]) < BAR
    assert len(gradients) == len(arrays)
    for i, gradient in enumerate(gradients):
        assert gradient.shape == arrays[i].shape
        way = gradient / numpy.linalg.norm(gradient) + (
            rng.normal(size=gradient.shape) / gradient.size**0.5)
        ahead, behind = ([*arrays[:i], arrays[i] + sign * way, *arrays[i + 1 :]]
                         for sign in (1e-5, -1e-5))
        slope = (loss(ahead) - loss(behind)) / 2e-5
        assert slope == pytest.approx((gradient * way).sum(), rel=BAR)
    steps = [p - problem["lr"] * g for p, g in zip(arrays[1:], gradients[1:])]
    assert peers.largest_difference(steps, after) < BAR
    assert peers.largest_difference(found, mxnet_steps.heads(problem, 1)) < BAR


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_what_is_stored_is_of_this_code_and_within_the_bound(technique):
    record = stored.read(f"rosetta-{technique}")
    assert record.measure == "benchmarks.scale.rosetta.compare:with_peers"
    assert record.args == [technique]
    names = {f"{compare.NAMES[f]} {n}" for f, n in compare.TECHNIQUES[technique][3]}
    found = record.data
    assert set(found["differences"]) == names | set(compare.TECHNIQUES[technique][2])
    assert max(found["differences"].values()) < BAR < 1e-3 * found["moved"]
    code = {f: peers.digest(f) for f, _ in compare.TECHNIQUES[technique][3]}
    assert found["code"] == code, f"make result NAME=rosetta-{technique} measures again"


@pytest.mark.skipif(bool(missing), reason=str(missing))
@pytest.mark.parametrize("technique", TECHNIQUES)
def test_pytorch_and_jax_take_the_same_step(technique):
    assert max(compare.with_peers(technique)["differences"].values()) < BAR


def test_without_an_interpreter_for_the_peers_it_says_how_to_get_one(monkeypatch):
    monkeypatch.setenv(peers.PEER_PYTHON, "/nowhere/python")
    assert "no torch and no jax here: make bench-peers" in peers.why_not()


def test_an_interpreter_without_the_peers_is_found_out(monkeypatch):
    monkeypatch.setenv(peers.PEER_PYTHON, sys.executable)
    if peers.versions():
        pytest.skip("this environment has them")
    assert "no torch" in peers.why_not()
    with pytest.raises(RuntimeError, match="No module named 'torch'"):
        peers.step("torch", "plain", problems.block())


def test_arrays_of_other_shapes_are_not_compared():
    with pytest.raises(ValueError, match="not the same network"):
        peers.largest_difference([numpy.ones((2, 3))], [numpy.ones((3, 2))])
    with pytest.raises(ValueError, match="not the same network"):
        peers.largest_difference([numpy.ones(3)], [])


def test_the_difference_is_relative_to_the_arrays_largest_value():
    weights = [numpy.array([1.0, 100.0]), numpy.array([0.5])]
    others = [numpy.array([2.0, 100.0]), numpy.array([0.5])]
    assert peers.largest_difference(weights, others) == pytest.approx(0.01)


def test_weights_that_are_no_numbers_are_infinitely_far_from_others():
    weights = [numpy.ones(2), numpy.ones(3)]
    others = [numpy.ones(2), numpy.array([1.0, numpy.nan, 1.0])]
    assert peers.largest_difference(weights, others) == math.inf
    assert peers.largest_difference(others, weights) == math.inf
