"""What is sent is counted where it is sent, and the closed forms say how much."""

import d2l_ext  # noqa: F401, I001
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import np, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices
from d2l_ext.data_parallel.traffic import Traffic

npx.set_np()


def test_a_send_is_a_copy_on_the_other_device():
    here, there = try_all_devices(2)
    x = np.arange(6, ctx=here).reshape(2, 3)
    copy = traffic.send(x, there)
    x[:] = 0
    assert copy.ctx == there and copy.asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_send_to_an_array_overwrites_it():
    here, there = try_all_devices(2)
    y = np.zeros(3, dtype="uint8", ctx=there)
    assert traffic.send(np.arange(3, dtype="uint8", ctx=here), y) is y
    assert y.asnumpy().tolist() == [0, 1, 2]


def test_bytes_are_counted_at_both_ends_by_the_order_of_the_devices():
    a, b, c = try_all_devices(3)
    with traffic.count([c, a, b]) as moved:
        traffic.send(np.ones(10, ctx=a), b)
        traffic.send(np.ones((2, 3), dtype="float16", ctx=b), c)
    #                             c   a   b
    assert moved == Traffic(sent=[0, 40, 12], received=[12, 0, 40])


def test_rounds_are_counted_and_passed_through():
    with traffic.count(try_all_devices(1)) as moved:
        assert list(traffic.rounds("abc")) == ["a", "b", "c"]
    assert moved.steps == 3


@pytest.mark.parametrize("sizes", [(4, 2), (2, 4)])
def test_rounds_at_once_are_those_of_the_group_with_the_most(sizes):
    with traffic.count(try_all_devices(1)) as moved:
        list(traffic.rounds("a"))
        groups = [range(size) for size in sizes]
        found = traffic.at_once(lambda group: list(traffic.rounds(group)), groups)
    assert found == [[*group] for group in groups]
    assert moved.steps == 1 + 4


def test_nothing_is_counted_before_and_after_the_block_which_an_error_ends_too():
    here, there = try_all_devices(2)
    traffic.send(np.ones(10, ctx=here), there)
    with pytest.raises(KeyError), traffic.count([here, there]) as moved:
        raise KeyError
    traffic.send(np.ones(10, ctx=here), there)
    list(traffic.rounds("abc"))
    assert moved == Traffic([0, 0], [0, 0], 0)


def test_a_count_inside_a_count_counts_for_both():
    here, there = devices = try_all_devices(2)
    with traffic.count(devices) as outer:
        traffic.send(np.ones(10, ctx=here), there)
        with traffic.count(devices) as inner:  # equal to the outer, were it empty
            traffic.send(np.ones(1, ctx=here), there)
        traffic.send(np.ones(10, ctx=here), there)
    assert (outer.sent[0], inner.sent[0]) == (84, 4)


def test_a_copy_within_a_device_is_no_traffic_and_other_devices_are_refused():
    here, there = try_all_devices(2)
    message = f"{there} sends or receives, but only {here} are counted"
    with traffic.count([here]) as moved:
        traffic.send(np.ones(10, ctx=here), here)
        with pytest.raises(ValueError, match=re.escape(message)):
            traffic.send(np.ones(1, ctx=here), there)
    assert moved.sent == [0]
    refused = pytest.raises(ValueError, match="a device is repeated in")
    with refused, traffic.count([here, here]):
        pass


@settings(max_examples=100)
@given(st.integers(1, 17), st.integers(0, 10_000))
def test_cuts_cover_everything_in_sizes_that_differ_by_one_at_most(k, size):
    edges = traffic.cuts(size, k)
    lengths = [stop - start for start, stop in zip(edges, edges[1:])]
    assert (edges[0], edges[-1], len(lengths)) == (0, size, k)
    assert max(lengths) - min(lengths) <= 1
