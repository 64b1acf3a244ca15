"""The two-bit codes by hand are those of MXNet's kvstore, in every element."""

import d2l_ext  # noqa: F401, I001
import io

import mxnet as mx
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mxnet import cpu, nd

import pslaunch as launch
from d2l_ext.kvstore import compression
from d2l_ext.kvstore.compression import (
    MINUS,
    PLUS,
    Sender,
    Snapshot,
    ZERO,
    decompress,
    dequantize,
    pack,
    packed_size,
    quantize,
    unpack,
)

random_cases = settings(max_examples=60)
codes = st.lists(st.sampled_from([ZERO, MINUS, PLUS]), max_size=70).map(
    lambda values: numpy.array(values, dtype="uint8")
)
gradients = arrays(
    "float32",
    st.integers(1, 50),
    elements=st.floats(-1e6, 1e6, width=32, allow_subnormal=False),
)
thresholds = st.sampled_from([0.5, 0.1, 1 / 3, 2.0, 1e-3])


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


def test_message_and_residual_lie_in_the_store_s_memory_bit_by_bit():
    shape, threshold = (37, 111), 0.3
    rng, store, sender = numpy.random.RandomState(1), Store(shape, 0.3), Sender(0.3)
    steps = [random_gradients(rng, shape) for _ in range(5)]
    for gradients in steps:
        store.sum(gradients)
    theirs = Snapshot()
    for gradients in steps:
        message = sender.compress(gradients[0])
    assert theirs.holds(message)
    assert theirs.holds(sender.residual)
    words = message.reshape(-1, 4)
    assert not theirs.holds(words[:, ::-1])  # neither another order of bytes …
    assert not theirs.holds(decompress(message, shape, threshold) * 1.5)


def test_values_that_are_no_numbers_are_treated_as_the_store_does():
    shape = (4,)
    store, sender = Store(shape, 0.5, devices=1), Sender(0.5)
    for gradient in (array(numpy.nan, numpy.inf, -numpy.inf, 1), array(9, 0, 0, -0.0)):
        theirs = store.sum([gradient])
        ours = decompress(sender.compress(gradient), shape, 0.5)
        assert theirs.tolist() == ours.tolist() == [0, 0.5, -0.5, 0.5]


def test_a_local_store_refuses_compression():
    with pytest.raises(Exception, match="not supported for this type of kvstore"):
        mx.kv.create("local").set_gradient_compression({"type": "2bit"})


# Against MXNet, in a job of two workers and a server


def gradients_of(rank):
    rng = numpy.random.RandomState(rank)
    return (0.3 * rng.randn(100, 37, 111)).astype("float32")


def push_and_pull(kv, gradients, threshold):
    """Runs in each worker: what push, `pushpull` and a tiny threshold give."""

    def compress(threshold):
        kv.set_gradient_compression({"type": "2bit", "threshold": threshold})
        kv._barrier()

    compress(threshold)
    mine = gradients[kv.rank]
    pulled, sums = mx.nd.zeros(mine[0].shape), []
    kv.init("w", pulled)
    for gradient in mine:
        kv.push("w", mx.nd.array(gradient))
        kv.pull("w", out=pulled)
        sums.append(pulled.asnumpy())
    theirs, sender = Snapshot(), Sender(threshold)
    for gradient in mine:
        message = sender.compress(gradient)
    try:
        kv.pushpull("w", pulled, out=pulled)
    except mx.MXNetError as error:
        complaint = str(error)
    compress(4e-7)
    kv.init("tiny", mx.nd.zeros(1))
    kv.push("tiny", mx.nd.ones(1))
    kv.pull("tiny", out=(tiny := mx.nd.ones(1)))
    return {"sums": numpy.array(sums), "message": theirs.holds(message),
            "residual": theirs.holds(sender.residual), "complaint": complaint,
            "tiny": float(tiny.asscalar())}


@pytest.fixture(scope="module")
def job():
    gradients = [gradients_of(rank) for rank in (0, 1)]
    return launch.call(push_and_pull, gradients, 0.3)


def test_in_a_job_all_sums_of_100_steps_equal_those_by_hand(job):
    senders = [Sender(0.3), Sender(0.3)]
    for step, gradients in enumerate(zip(gradients_of(0), gradients_of(1))):
        messages = [s.compress(g) for s, g in zip(senders, gradients)]
        by_hand = sum(decompress(m, (37, 111), 0.3) for m in messages)
        for worker in job:
            assert worker["sums"][step].tobytes() == by_hand.tobytes()


def test_in_a_job_each_worker_s_memory_holds_its_message_and_residual(job):
    assert all(worker["message"] and worker["residual"] for worker in job)


def test_pushpull_of_a_job_cannot_compress(job):
    for worker in job:
        assert "Compression not supported with PushPull" in worker["complaint"]


def test_servers_read_the_threshold_with_six_decimals(job):
    assert [worker["tiny"] for worker in job] == [0, 0]


def sum_on_the_store(kv, gradients):
    """Runs in each worker: pushes from two devices to a store that adds them up."""
    kv.set_gradient_compression({"type": "2bit", "threshold": 0.25})
    kv._barrier()
    if kv.rank == 0:
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=-1.0))
    kv._barrier()
    total = mx.nd.zeros(gradients.shape[-1])
    kv.init("w", total)
    for pair in gradients[kv.rank]:
        kv.push("w", [mx.nd.array(g, ctx=mx.cpu(i)) for i, g in enumerate(pair)])
        kv.pull("w", out=total)
    mx.nd.waitall()
    kv._barrier()
    kv.pull("w", out=total)
    return total


def test_a_worker_sums_its_devices_first_and_compresses_once():
    rng = numpy.random.RandomState(0)
    gradients = (rng.randint(-8, 9, (2, 20, 2, 40)) / 16).astype("float32")
    by_hand = numpy.zeros(40, dtype="float32")  # exact: multiples of 1/16
    for worker in gradients:
        sender = Sender(0.25)
        for first, second in worker:
            by_hand += decompress(sender.compress(first + second), (40,), 0.25)
    for total in launch.call(sum_on_the_store, gradients, kv_type="dist_async_device"):
        assert (total == by_hand).all()


# Codes


def test_the_codes_are_those_of_the_text():
    total = array(0.5, 0.49, -0.5, -0.49, 7, -7, 0)
    found, rest = quantize(total, numpy.float32(0.5))
    assert found.tolist() == [0b11, 0b00, 0b10, 0b00, 0b11, 0b10, 0b00]
    assert (rest == total - array(0.5, 0, -0.5, 0, 0.5, -0.5, 0)).all()


def test_the_drawing_in_the_docstring_is_the_packing():
    element, bits, _ = (
        line for line in pack.__doc__.splitlines() if line.strip()[:3] in BEGINNINGS
    )
    order = [int(word) for word in element.split()[1:]]
    for i, pair in zip(order, bits.split()[1:]):
        row = numpy.zeros(16, dtype="uint8")
        row[i] = PLUS
        byte = 1 << int(pair[0]) | 1 << int(pair[1])
        assert pack(row).tolist() == [byte if b == i // 4 else 0 for b in range(4)]


BEGINNINGS = ("ele", "bit", "byt")


@random_cases
@given(codes)
def test_what_is_packed_is_unpacked(values):
    message = pack(values)
    assert message.nbytes == packed_size(values.size)
    assert message.nbytes % 4 == 0
    assert (unpack(message, values.size) == values).all()


@pytest.mark.parametrize("size, nbytes", [(0, 0), (1, 4), (16, 4), (17, 8), (160, 40)])
def test_sixteen_values_take_four_bytes(size, nbytes):
    assert packed_size(size) == nbytes


def test_the_unused_code_is_read_as_zero():
    assert dequantize(numpy.uint8([0b01]), numpy.float32(0.5)).tolist() == [0]


# The residual


@random_cases
@given(gradients, thresholds)
def test_what_is_sent_and_what_is_kept_are_what_was_there(gradient, threshold):
    found, rest = quantize(gradient, numpy.float32(threshold))
    sent = dequantize(found, numpy.float32(threshold))
    assert (rest == gradient - sent).all()
    assert (abs(rest) <= abs(gradient)).all()


@random_cases
@given(st.lists(st.integers(-8, 8), min_size=1, max_size=40), st.integers(1, 8))
def test_over_time_nothing_is_lost(eighths, threshold):
    # Multiples of 1/8 are exact in float32, so the sums can be compared exactly.
    sender, sent = Sender(threshold / 8), array(0)
    for value in eighths:
        sent += decompress(sender.compress(array(value / 8)), (1,), threshold / 8)
    assert sent + sender.residual == sum(eighths) / 8


@pytest.mark.parametrize("gradients, messages", [
    ([0.25] * 6, [0, 0.5, 0, 0.5, 0, 0.5]),  # when enough has gathered
    ([2, 0, 0, 0, 0], [0.5, 0.5, 0.5, 0.5, 0]),  # by one threshold at most
])
def test_an_element_moves_by_a_threshold_or_not_at_all(gradients, messages):
    sender = Sender(0.5)
    sent = [float(decompress(sender.compress(array(g)), (1,))) for g in gradients]
    assert sent == messages


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
