"""Large receive buffers are used again, and never while someone holds them."""

import d2l_ext  # noqa: F401, I001
import gc

import pytest
from mxnet import autograd, cpu, np, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.data_parallel.traffic import LARGE, empty_like

npx.set_np()


@pytest.fixture
def x():
    """On a CPU context in any case: the stock is for those."""
    traffic.release()
    yield np.ones((LARGE // 4, 1), ctx=cpu(0))
    traffic.release()


def stock():
    gc.collect()
    return sum(len(idle) for idle in traffic._idle.values())


def test_a_buffer_has_the_shape_and_dtype_of_the_array_and_its_own_device(x):
    array = empty_like(x.astype("int32"), cpu(1))
    assert (array.shape, array.dtype, array.ctx) == (x.shape, "int32", cpu(1))


def test_a_dropped_buffer_is_used_again(x):
    first = empty_like(x, cpu(1))
    first[:] = 5
    assert stock() == 0
    del first
    assert stock() == 1
    second = empty_like(x, cpu(1))
    assert stock() == 0 and (second.asnumpy() == 5).all()


def test_two_buffers_that_are_held_are_two(x):
    first, second = empty_like(x, cpu(1)), empty_like(x, cpu(1))
    first[:], second[:] = 1, 2
    assert (first.asnumpy() == 1).all() and (second.asnumpy() == 2).all()


def test_another_shape_of_the_same_size_shares_the_stock(x):
    empty_like(x, cpu(1))
    assert stock() == 1
    assert empty_like(x.reshape(2, -1), cpu(1)).shape == (2, LARGE // 8)
    assert stock() == 1


@pytest.mark.parametrize("change", ["device", "dtype", "size"])
def test_another_device_dtype_or_size_has_a_stock_of_its_own(x, change):
    empty_like(x, cpu(1))
    other = {"device": x, "dtype": x.astype("int32"), "size": np.ones(LARGE)}[change]
    held = empty_like(other, cpu(2) if change == "device" else cpu(1))
    assert held is not None and stock() == 1


def test_small_arrays_and_recorded_ones_are_not_from_the_stock(x):
    empty_like(x[1:], cpu(1))
    with autograd.record():
        empty_like(x, cpu(1))
    assert stock() == 0


def test_no_more_than_eight_of_a_kind_are_kept(x):
    held = [empty_like(x, cpu(1)) for _ in range(12)]
    held.clear()
    assert stock() == 8


def test_a_released_stock_is_empty_and_takes_nothing_from_before(x):
    held = empty_like(x, cpu(1))
    empty_like(x, cpu(1))
    traffic.release()
    del held
    assert stock() == 0
