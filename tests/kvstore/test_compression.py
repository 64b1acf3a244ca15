"""The two-bit codes by hand are those of MXNet's kvstore, in every element."""

import d2l_ext  # noqa: F401, I001
import io

import mxnet as mx
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import cpu, nd

from d2l_ext.kvstore import compression
from d2l_ext.kvstore.compression import (
    MINUS,
    PLUS,
    Sender,
    ZERO,
    decompress,
    pack,
    packed_size,
    quantize,
    unpack,
)

codes = st.lists(st.sampled_from([ZERO, MINUS, PLUS]), max_size=70).map(
    lambda values: numpy.array(values, dtype="uint8")
)


def array(*values):
    return numpy.array(values, dtype="float32")


class Store:
    """MXNet's own compression between two CPU contexts, one key."""

    def __init__(self, shape, threshold, devices=2):
        self.devices = [cpu(i) for i in range(devices)]
        self.kv, self.out = mx.kv.create("device"), nd.zeros(shape)
        self.kv.set_gradient_compression({"type": "2bit", "threshold": threshold})
        self.kv.init("w", nd.zeros(shape))

    def sum(self, gradients):
        on_devices = [nd.array(g, ctx=d) for g, d in zip(gradients, self.devices)]
        self.kv.push("w", on_devices)
        self.kv.pull("w", out=self.out)
        return self.out.asnumpy()


def random_gradients(rng, shape, devices=2):
    """From a tenth of the usual threshold to a hundred times as much."""
    scales = 10 ** rng.uniform(-1, 2, (devices, *shape))
    return (rng.randn(devices, *shape) * scales * 0.05).astype("float32")


# Against MXNet


@pytest.mark.parametrize("threshold", [0.5, 0.1, 1 / 3, 1e-3, 3.0])
@pytest.mark.parametrize("shape", [(16,), (7, 13), (1,), (3, 5, 33)])
def test_sums_equal_those_of_the_store_in_every_element(shape, threshold):
    rng, store = numpy.random.RandomState(0), Store(shape, threshold)
    senders = [Sender(threshold), Sender(threshold)]
    for _ in range(100):
        gradients = random_gradients(rng, shape)
        messages = [s.compress(g) for s, g in zip(senders, gradients)]
        by_hand = sum(decompress(m, shape, threshold) for m in messages)
        assert by_hand.shape == shape
        assert store.sum(gradients).tobytes() == by_hand.tobytes()


def test_values_that_are_no_numbers_are_treated_as_the_store_does():
    shape = (4,)
    store, sender = Store(shape, 0.5, devices=1), Sender(0.5)
    for gradient in (array(numpy.nan, numpy.inf, -numpy.inf, 1), array(9, 0, 0, -0.0)):
        theirs = store.sum([gradient])
        ours = decompress(sender.compress(gradient), shape, 0.5)
        assert theirs.tolist() == ours.tolist() == [0, 0.5, -0.5, 0.5]


# Codes


def test_the_codes_are_those_of_the_text():
    total = array(0.5, 0.49, -0.5, -0.49, 7, -7, 0)
    found, rest = quantize(total, numpy.float32(0.5))
    assert found.tolist() == [0b11, 0b00, 0b10, 0b00, 0b11, 0b10, 0b00]
    assert (rest == total - array(0.5, 0, -0.5, 0, 0.5, -0.5, 0)).all()


@settings(max_examples=60)
@given(codes)
def test_what_is_packed_is_unpacked(values):
    message = pack(values)
    assert message.nbytes == packed_size(values.size)
    assert message.nbytes % 4 == 0
    assert (unpack(message, values.size) == values).all()


@pytest.mark.parametrize("size, nbytes", [(0, 0), (1, 4), (16, 4), (17, 8), (160, 40)])
def test_sixteen_values_take_four_bytes(size, nbytes):
    assert packed_size(size) == nbytes


# The residual


def test_the_gradient_itself_is_left_alone():
    gradient = array(1, 2, 3)
    sender = Sender()
    sender.compress(gradient)
    sender.compress(gradient)
    assert gradient.tolist() == [1, 2, 3]


def test_memory_that_comes_in_several_reads_is_read_completely():
    """Linux returns at most 2 GiB at once."""
    class Memory(io.BytesIO):
        def read(self, size):
            return super().read(min(size, 3))

    assert compression._read(Memory(b"0123456789"), 2, 9) == b"2345678"


# Errors


@pytest.mark.parametrize("threshold", [0, -0.5, numpy.nan, 1e-50])
def test_a_threshold_that_is_not_positive_is_refused(threshold):
    with pytest.raises(ValueError, match="threshold must be greater than 0, not"):
        Sender(threshold)
    with pytest.raises(ValueError, match="threshold must be greater than 0, not"):
        decompress(numpy.zeros(4, dtype="uint8"), (1,), threshold)


@pytest.mark.parametrize("gradient, kind", [
    (numpy.zeros(3), "float64"),
    (numpy.zeros(3, dtype="float16"), "float16"),
    ([0.0], "list"),
    (nd.zeros(3), "NDArray"),
])
def test_anything_but_a_float32_numpy_array_is_refused(gradient, kind):
    with pytest.raises(TypeError, match=f"takes a float32 NumPy array, not .*{kind}"):
        Sender().compress(gradient)


def test_a_sender_serves_one_key():
    sender = Sender()
    sender.compress(array(1, 2))
    with pytest.raises(ValueError, match=r"was \(2,\), now \(3,\): use one"):
        sender.compress(array(1, 2, 3))


@pytest.mark.parametrize("nbytes", [0, 4, 12])
def test_a_message_of_another_length_is_refused(nbytes):
    with pytest.raises(ValueError, match=f"packed in 8 bytes, not {nbytes}"):
        decompress(numpy.zeros(nbytes, dtype="uint8"), (17,))
