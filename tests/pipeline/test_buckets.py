"""Buckets change how much is padded, and nothing else."""

import d2l_ext  # noqa: F401, I001
import json
import os
import subprocess
import sys
from pathlib import Path

import mxnet as mx
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2l_ext.pipeline import lstm
from d2l_ext import pipeline
from d2l_ext.pipeline.buckets import (
    BucketIter,
    PAD,
    bind_all,
    choose_lengths,
    padding,
    sentences,
    widen,
)
from d2l_ext.devices import storage, try_all_devices

H, N, V, LAYERS = 8, 4, 11, 2
LENGTHS = [3, 6, 9]


def sequences(number=40, longest=9, seed=0):
    rng = numpy.random.RandomState(seed)
    return [list(rng.randint(0, V, rng.randint(2, longest + 2))) for _ in range(number)]


def unroll(T):
    symbol = lstm.lstm_unroll(LAYERS, T, 5, H, V, ignore_label=PAD)
    return symbol, lstm.input_shapes(LAYERS, T, N, H)


def placed(k):
    cuts = [2][: k - 1]
    parts = pipeline.split(lstm.groups(LAYERS), cuts)
    return pipeline.placement(parts, try_all_devices(k))


def params():
    return lstm.init_params(*unroll(LENGTHS[-1]), scale=0.5)


@pytest.mark.parametrize("k", [1, 2])
def test_an_epoch_with_buckets_ends_where_one_without_does(k):
    bucketed = bind_all(unroll, LENGTHS, placed(k), params())
    last = LENGTHS[-1]
    unbucketed = bind_all(unroll, [last], placed(k), params())
    for batch in BucketIter(sequences(), LENGTHS, N):
        own, whole = bucketed[batch.bucket_key], unbucketed[last]
        own.forward_backward(batch.data[0], batch.label[0])
        whole.forward_backward(*widen(batch, last))
        for bound in (own, whole):
            bound.update(0.5, count=batch.count)
    for name, start in params().items():
        found, expected = (
            nets[last].params[name].asnumpy() for nets in (bucketed, unbucketed)
        )
        assert abs(found - expected).max() <= 1e-6 * abs(expected).max(), name
        assert (expected != start.asnumpy()).any()


def held(lengths, k):
    """Bytes that each device holds after a step of every length."""
    values = params()
    with storage.record(try_all_devices(k)) as memory:
        bound = bind_all(unroll, lengths, placed(k), values)
        for T, pipe in bound.items():
            pipe.forward_backward(numpy.zeros((T, N)), numpy.zeros((T, N)))
    return list(memory.held.values())


def test_four_lengths_take_less_than_a_fifth_more_memory_than_the_longest():
    # One scratch space: with more, each graph draws others, and they all grow.
    env = {**os.environ, "MXNET_CPU_TEMP_COPY": "1"}
    asked = (
        "import test_buckets as t; t.H, t.N = 32, 8; "
        "print([[t.held(lengths, k) for lengths in ([20], [20], [20, 15, 11, 8])] "
        "for k in (1, 2)])"
    )
    ran = subprocess.run([sys.executable, "-c", asked], cwd=Path(__file__).parent,
                         env=env, timeout=600, capture_output=True, text=True,
                         check=True)
    # The first of each three makes the scratch space.
    for _, longest, shared in json.loads(ran.stdout):
        for alone, together in zip(longest, shared):
            assert 0 < together < 1.2 * alone


def test_rows_are_time_steps_and_columns_are_sequences():
    rows = [[1, 2, 3, 4], [5, 6, 7], [8, 9, 10]]
    (batch,) = BucketIter(rows, [4], batch_size=3)
    assert batch.data[0].asnumpy().tolist() == [
        [1, 5, 8], [2, 6, 9], [3, 0, 0], [0, 0, 0],
    ]
    assert batch.label[0].asnumpy().tolist() == [
        [2, 6, 9], [3, 7, 10], [4, PAD, PAD], [PAD] * 3,
    ]
    assert (batch.bucket_key, batch.count, batch.pad) == (4, 7, 0)
    (described,) = batch.provide_data
    assert (described.name, described.shape, described.layout) == ("data", (4, 3), "TN")
    assert batch.provide_label[0].shape == (4, 3)


@settings(max_examples=60)
@given(st.lists(st.integers(2, 10), min_size=1, max_size=30), st.integers(1, 5))
def test_every_sequence_is_in_one_batch_of_the_smallest_bucket(sizes, batch_size):
    rows = [[i + 1] * size for i, size in enumerate(sizes)]
    found = []
    for batch in BucketIter(rows, LENGTHS, batch_size):
        T, y = batch.bucket_key, batch.label[0].asnumpy()
        assert batch.data[0].shape == y.shape == (T, batch_size)
        assert batch.count == (y != PAD).sum()
        for column in y.T[: batch_size - batch.pad]:
            length = (column != PAD).sum()
            assert T == min(t for t in LENGTHS if t >= length)
            found.append([int(column[0])] * (length + 1))
    assert sorted(found) == sorted(rows)


def test_an_epoch_has_the_same_batches_in_an_order_of_its_own():
    it = BucketIter(sequences(), LENGTHS, N)
    first = [id(b) for b in it]
    it.reset()
    second = [id(b) for b in it]
    assert first != second and sorted(first) == sorted(second)
    assert [b.bucket_key for b in BucketIter(sequences(), LENGTHS, N)] == [
        b.bucket_key for b in BucketIter(sequences(), LENGTHS, N)
    ]


def test_padding_is_counted():
    rows = [[1] * 3, [1] * 3, [1] * 7, [1] * 6]  # 2, 2, 6 and 5 time steps
    batches = list(BucketIter(rows, [2, 6], batch_size=2))
    assert padding(batches) == pytest.approx(1 - 15 / 16)


@given(st.lists(st.integers(1, 99), min_size=1), st.integers(1, 9))
def test_the_chosen_buckets_hold_everything(lengths, number):
    chosen = choose_lengths(lengths, number)
    assert chosen[-1] == max(lengths) and len(chosen) <= number
    assert chosen == sorted(set(chosen)) and set(chosen) <= set(lengths)


def test_sentences_end_at_full_stops_and_lines():
    assert sentences("One. Two 2.5\n\n  x\nthree ") == ["One.", "Two 2.5", "three"]


@pytest.mark.parametrize("call, message", [
    (lambda: sentences(""), "the text has 0 characters, but no sentence"),
    (lambda: sentences("a\n\nb"), "no sentence of at least two"),
    (lambda: BucketIter([], LENGTHS, N), "no sequences: the text is empty"),
    (lambda: BucketIter([[1, 2], [3]], LENGTHS, N), "sequence 1 has 1 characters"),
    (lambda: BucketIter([[1] * 4, [1] * 11], LENGTHS, 2),
     "sequence 1 has 10 .* largest bucket 9: add"),
    (lambda: BucketIter([[1, 2]], [], N), "shortest bucket must be .* 1, not 0"),
    (lambda: BucketIter([[1, 2]], [0, 3], N), "bucket must be a whole number of at"),
    (lambda: BucketIter([[1, 2]], LENGTHS, 0), "batch_size must be .* not 0"),
])
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# BucketingModule cannot reuse a buffer under NumPy's semantics.
def test_mxnets_bucketing_module_ends_there_too(without_numpy_semantics):
    states = {n: s for n, s in unroll(1)[1].items() if n.startswith("l")}
    ours = bind_all(unroll, LENGTHS, placed(2), params())
    names = ("data", *states)

    def generate(T):
        return unroll(T)[0], names, ("softmax_label",)

    it = BucketIter(sequences(), LENGTHS, N, states=states)
    module = mx.mod.BucketingModule(
        generate, it.default_bucket_key, context=[try_all_devices(2)[0]],
        group2ctxs=placed(2),
    )
    module.bind(it.provide_data, it.provide_label)
    module.init_params(arg_params=params())
    module.init_optimizer(
        kvstore=None, optimizer_params={"learning_rate": 0.5, "rescale_grad": 0.1}
    )
    for batch in it:
        module.forward_backward(batch)
        module.update()
        bound = ours[batch.bucket_key]
        bound.forward_backward(batch.data[0], batch.label[0])
        bound.update(0.5, count=10)
    found, _ = module.get_params()
    for name, expected in ours[LENGTHS[-1]].params.items():
        difference = found[name].asnumpy() - expected.asnumpy()
        assert abs(difference).max() <= 1e-5, name
