"""A minibatch is divided completely, in order, and in proportion."""

import d2l_ext  # noqa: F401, I001
from math import inf, nan

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mxnet import np, npx

from d2l_ext.devices import try_all_devices
from d2l_ext.data_parallel.minibatch import shard_sizes, split_batch

npx.set_np()


def test_four_rows_on_two_devices_are_two_and_two():
    devices = try_all_devices(2)
    X, y = np.arange(20).reshape(4, 5), np.arange(4)
    X_shards, y_shards = split_batch(X, y, devices)
    assert [s.asnumpy().tolist() for s in X_shards] == [
        [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]],
        [[10, 11, 12, 13, 14], [15, 16, 17, 18, 19]],
    ]
    assert [s.asnumpy().tolist() for s in y_shards] == [[0, 1], [2, 3]]
    assert [s.ctx for s in X_shards] == devices


def test_shard_sizes_by_eye():
    assert shard_sizes(10, 4) == [3, 3, 2, 2]  # what is left over: to the first
    assert shard_sizes(80, 2, [3, 1]) == [60, 20]
    assert shard_sizes(4, 2, [1000, 1]) == [3, 1]  # never nothing


@given(st.integers(1, 9), st.integers(0, 300))
def test_even_shards_are_complete_and_differ_by_one_at_most(k, spare):
    sizes = shard_sizes(k + spare, k)
    assert sum(sizes) == k + spare
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 300))
def test_weighted_shards_are_complete_and_nobody_is_left_out(loads, spare):
    n = len(loads) + spare
    sizes = shard_sizes(n, len(loads), loads)
    assert sum(sizes) == n
    assert min(sizes) >= 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_loads_that_divide_the_batch_are_met_exactly(loads):
    n = 7 * sum(loads)
    assert shard_sizes(n, len(loads), loads) == [7 * load for load in loads]


@given(st.integers(1, 4), st.integers(0, 20))
def test_the_shards_put_together_are_the_batch(k, spare):
    X = numpy.arange((k + spare) * 3).reshape(k + spare, 3)
    shards, _ = split_batch(np.array(X), np.zeros(k + spare), try_all_devices(k))
    assert (numpy.concatenate([s.asnumpy() for s in shards]) == X).all()


@pytest.mark.parametrize("call, message", [
    (lambda: split_batch(np.zeros((4, 5)), np.zeros(3), try_all_devices(2)),
     "X has 4 examples and y has 3"),
    (lambda: split_batch(np.zeros((3, 5)), np.zeros(3), try_all_devices(4)),
     "3 examples cannot be split over 4 devices"),
    *((lambda loads=loads: shard_sizes(8, 2, loads), "one positive number per device")
      for loads in ([1], [1, 2, 3], [1, 0], [1, -1], [1, inf], [1, nan])),
])
def test_what_cannot_be_split_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
