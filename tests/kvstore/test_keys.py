"""What is asked of a key is written down, and every worker knows where its array is."""

import d2l_ext  # noqa: F401, I001
import mxnet as mx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mxnet import nd, npx

from d2l_ext.kvstore.keys import END_OF_KEYS, VARIABLE, load, record, server_of, shards

npx.set_np()

keys = st.integers(0, END_OF_KEYS - 1)
counts = st.integers(1, 50)
sizes = st.integers(0, 10**8)
bounds = st.integers(0, 10**8)


def test_a_key_is_multiplied_by_9973_and_divided_among_the_servers():
    # Read from the log of a job with five servers, keys 0 to 7.
    assert [server_of(key, 5) for key in range(8)] == [0, 3, 1, 4, 2, 0, 3, 1]
    assert [server_of(key, 2) for key in range(4)] == [0, 1, 0, 1]


def test_just_below_the_bound_an_array_is_whole_and_from_it_on_it_is_cut():
    # Read from the logs of jobs with two and with five servers.
    assert shards(3, 999_999, 2) == [0, 999_999]
    assert shards(3, 1_000_000, 2) == [500_000, 500_000]
    assert shards(3, 1_000_001, 2) == [500_001, 500_000]
    assert shards(7, 2_000_003, 2) == [1_000_002, 1_000_001]
    assert shards(9, 1_000_001, 5) == [200_000, 200_000, 200_001, 200_000, 200_000]


@given(keys, sizes, counts, bounds)
def test_an_array_is_on_its_server_or_cut_evenly(key, size, count, bound):
    held = shards(key, size, count, bound)
    assert len(held) == count and sum(held) == size and min(held) >= 0
    if size < bound:
        assert held[server_of(key, count)] == size
    else:
        assert max(held) - min(held) <= 1


def test_the_bound_comes_from_the_variable_unless_it_is_given(monkeypatch):
    monkeypatch.setenv(VARIABLE, "10")
    assert shards(0, 9, 2) == [9, 0]
    assert shards(0, 10, 2) == [5, 5]
    assert shards(0, 10, 2, bound=11) == [10, 0]
    monkeypatch.setenv(VARIABLE, "")
    assert shards(0, 10, 2) == [10, 0]
    monkeypatch.delenv(VARIABLE)
    assert shards(0, 10, 2) == [10, 0]


def test_the_load_is_the_sum_over_the_arrays():
    assert load([180, 20, 25_000, 50], 2) == [25_180, 70]
    assert load([180, 20, 25_000, 50], 2, bound=100) == [12_590, 12_660]
    assert load([], 3) == [0, 0, 0]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((-1, 5, 2), "key=-1: use a key from 0 to 215329"),
        ((END_OF_KEYS, 5, 2), "key=215330"),
        ((0, -5, 2), "size must be a whole number of at least 0, not -5"),
        ((0, 5, 0), "num_servers must be a whole number of at least 1"),
    ],
)
def test_what_mxnet_cannot_place_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        shards(*arguments)


# ---- What a program asks ----


def test_the_recorded_calls_reach_the_store():
    kv, out = mx.kv.create("local"), nd.zeros(2)
    with record(kv) as calls:
        kv.init("a", nd.ones(2))
        kv.push(key="a", value=nd.array([3, 4]))
        kv.pull("a", out=out)
    assert calls == ["init a", "push a", "pull a"]
    assert out.asnumpy().tolist() == [3, 4]


def test_after_the_block_nothing_is_recorded():
    kv = mx.kv.create("local")
    with record(kv) as calls, pytest.raises(KeyError):
        raise KeyError
    kv.init("a", nd.ones(2))
    assert calls == [] and "init" not in vars(kv)


def test_what_recorded_the_calls_before_records_them_afterwards():
    kv = mx.kv.create("local")
    with record(kv) as outer:
        with record(kv) as inner:
            kv.init("a", nd.ones(2))
        kv.init("b", nd.ones(2))
    assert (inner, outer) == (["init a"], ["init a", "init b"])
    assert "init" not in vars(kv)
