"""The rungs of the ladder train the same network, but for those that say otherwise."""

import d2l_ext  # noqa: F401, I001  (before MXNet's engine)

import os
import shutil

import numpy
import pytest
from mxnet import MXNetError, np, npx

from benchmarks.data_parallel import ladder, ladder_decoder
from d2l_ext.data import load_arrays
from d2l_ext.data_parallel import lenet
from d2l_ext.devices import timeline, try_all_devices
from d2l_ext.tensor_parallel import transformer

npx.set_np()
DATA = load_arrays("digits")
WHOLE = [rung for rung in ladder.DIGITS
         if rung.id not in ("joined", "channels-last")]


def trained(rung, steps=3, batch=64):
    """The arrays after a few steps of the rung's way, all on the same minibatches."""
    step = rung.step(lenet.init_params(), batch, try_all_devices(rung.devices))
    for i in range(steps):
        own = slice(i * batch, (i + 1) * batch)
        step(np.array(DATA.train_X[own]), np.array(DATA.train_y[own], dtype="int32"),
             0.2)
    return [p.asnumpy() for p in step.params()]


@pytest.fixture(scope="module")
def reference():
    return trained(ladder.DIGITS[1])


@pytest.mark.parametrize("rung", WHOLE, ids=lambda rung: rung.id)
def test_a_rung_gives_the_weights_of_the_plain_step(rung, reference):
    if rung.step is ladder.ReluPool and not shutil.which("g++"):
        pytest.skip("relu_pool.cc needs g++")
    for own, plain in zip(trained(rung), reference):
        numpy.testing.assert_allclose(own, plain, atol=1e-5)


def test_the_joined_graph_trains_the_dense_layers_only(reference):
    joined = trained(next(r for r in ladder.DIGITS if r.id == "joined"))
    begin = [p.asnumpy() for p in lenet.init_params()]
    still = [bool((a == b).all()) for a, b in zip(joined, begin)]
    assert still == [True] * 4 + [False] * 4


def test_channels_as_the_last_axis_are_refused_by_mxnet():
    rung = next(r for r in ladder.DIGITS if r.id == "channels-last")
    assert "convolution" in ladder.why_not(rung, ladder.Digits())
    with pytest.raises(MXNetError):
        trained(rung)


@pytest.mark.skipif(not shutil.which("g++"), reason="relu_pool.cc needs g++")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
@pytest.mark.skipif(ladder.generators() > 1, reason="more than one generator")
def test_two_devices_take_turns_with_an_operator_that_gets_the_only_generator():
    X, y = np.array(DATA.train_X[:256]), np.array(DATA.train_y[:256], dtype="int32")
    step = ladder.ReluPool(lenet.init_params(), 256, try_all_devices(2))
    step(X, y, 0.2)
    with timeline.record() as trace:
        for _ in range(3):
            step(X, y, 0.2)
    spans = sorted((event.start, event.end) for event in trace.events
                   if "relu_pool" in event.name)
    assert len(spans) >= 6
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:]))


def decoder_after_two_steps(rung):
    """The arrays of a decoder of 12 tokens, on the same minibatches for every rung."""
    decoder = transformer.Decoder(12, width=16, heads=2, layers=1)
    step = rung.step(transformer.init_params(decoder), 4, try_all_devices(rung.devices),
                     decoder)
    tokens = numpy.random.RandomState(0).randint(0, 12, (2, ladder_decoder.T + 1, 4))
    for ids in tokens:
        step(np.array(ids[:-1], dtype="int32"), np.array(ids[1:], dtype="int32"), 0.01)
    return [p.asnumpy() for p in step.params()]


@pytest.mark.parametrize("rung", ladder.TEXT[1:], ids=lambda rung: rung.id)
def test_a_rung_gives_the_weights_of_the_plain_decoder(rung):
    plain = decoder_after_two_steps(ladder.TEXT[0])
    for own, expected in zip(decoder_after_two_steps(rung), plain):
        numpy.testing.assert_allclose(own, expected, atol=1e-4)


def test_a_graph_that_is_replayed_reads_the_new_tokens():
    decoder = transformer.Decoder(12, width=16, heads=2, layers=1)
    step = ladder_decoder.Replayed(transformer.init_params(decoder), 4,
                                   try_all_devices(1), decoder)
    losses = []
    for token in (0, 1):
        X = np.full((ladder_decoder.T, 4), token, dtype="int32")
        step(X, X, 0)
        losses.append(step.replicas[0].replay.outputs[0].asnumpy())
    assert abs(losses[0] - losses[1]).max() > 1e-3


def test_the_energy_of_all_processors_is_added(tmp_path):
    for zone, microjoules in (("intel-rapl:0", 2_000_000), ("intel-rapl:1", 500_000),
                              ("intel-rapl:0:0", 700_000)):  # a part of the first
        (tmp_path / zone).mkdir()
        (tmp_path / zone / "energy_uj").write_text(f"{microjoules}\n")
    assert ladder.joules(tmp_path) == 2.5
    assert ladder.joules(tmp_path / "none") is None


def test_every_rung_changes_one_that_stands_before_it():
    for rungs in (ladder.DIGITS, ladder.TEXT):
        seen = {""}
        for rung in rungs:
            assert rung.under in seen
            seen.add(rung.id)
