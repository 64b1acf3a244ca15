"""A checksum notices every flipped bit, and says whose."""

import d2l_ext  # noqa: F401, I001
import numpy
import pytest
from mxnet import np

from d2l_ext.clinic.checksums import MODULUS, checksum, odd_ones
from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
def test_each_bit_of_a_small_array_counts(dtype):
    """Also those that a comparison of numbers misses: a zero's sign, a NaN's digits."""
    x = numpy.array([0, 1, -3, 100], dtype)
    sums = {tuple(checksum([x]))}
    for bit in range(8 * x.nbytes):
        y = x.copy()
        y.view("u1")[bit // 8] ^= 1 << bit % 8
        sums.add(tuple(checksum([y])))
        assert checksum([y]) != checksum([x])


def test_checksums_of_pieces_add_up_to_that_of_the_whole():
    x = numpy.random.RandomState(0).randn(1003)
    for k in (1, 2, 3, 4):
        pieces = [x[a:b] for a, b in traffic.spans(x.size, k)]
        assert sum(checksum(pieces)) % MODULUS == checksum([x])[0]


def test_devices_layout_and_library_do_not_matter():
    x = numpy.random.RandomState(0).randn(6, 4).astype("float32")
    arrays = [x, numpy.asfortranarray(x), x[:, ::-1][:, ::-1]]
    arrays += [np.array(x, ctx=d) for d in try_all_devices(2)]
    assert len({*checksum(arrays)}) == 1


@pytest.mark.parametrize("sums, found", [
    ([[1, 2], [1, 2]], {}),
    ([[1, 2], [1, 2], [1, 3]], {2: [1]}),
    ([[1, 2], [9, 2], [1, 3], [1, 2]], {1: [0], 2: [1]}),
    ([[1, 2], [1, 3]], {0: [1], 1: [1]}),  # between two there is no majority
    ([[1], [2], [3]], {0: [0], 1: [0], 2: [0]}),
    ([[5]], {}),
])
def test_the_majority_is_right(sums, found):
    assert odd_ones(sums) == found


def test_what_has_no_bits_of_numbers_is_refused():
    with pytest.raises(ValueError, match="array of object"):
        checksum([numpy.array([None])])
    with pytest.raises(ValueError, match=r"\[1, 2\] arrays"):
        odd_ones([[1], [1, 2]])
