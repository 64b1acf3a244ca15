"""Attention whose keys and values go around a ring is attention on one device."""

import d2l_ext  # noqa: F401, I001

import numpy
import pytest
from held_devices import TWO, done_alone, held, order_on
from mxnet import npx
from recorded_devices import devices_to_record

from d2l_ext.data_parallel import traffic
from d2l_ext.devices import storage, try_all_devices
from d2l_ext.tensor_parallel import ring_attention as ring

npx.set_np()

#: Largest difference, in units of the largest element.
TOLERANCE = {"float32": 1e-6, "float64": 1e-12}


def arrays(n=24, heads=3, width=5, dtype="float64", scale=1.0):
    """Queries, keys, values and a gradient of the output, as NumPy arrays."""
    rng = numpy.random.RandomState(1)
    return [(scale * rng.randn(heads, n, width)).astype(dtype) for _ in range(4)]


def whole(q, k, v, dO, causal):
    """Attention with all scores at once, in NumPy: output and three gradients."""
    q, k, v, dO = (x.astype("float64") for x in (q, k, v, dO))
    x = q @ k.swapaxes(1, 2) / q.shape[2] ** 0.5
    if causal:
        x[:, ~numpy.tri(x.shape[1], dtype=bool)] = -numpy.inf
    p = numpy.exp(x - x.max(axis=2, keepdims=True))
    p /= p.sum(axis=2, keepdims=True)
    dp = dO @ v.swapaxes(1, 2)
    dx = p * (dp - (p * dp).sum(axis=2, keepdims=True)) / q.shape[2] ** 0.5
    return p @ v, dx @ k, dx.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ dO


def assert_same_as_whole(data, order, causal):
    devices = try_all_devices(len(order))
    *parts, dOs = (ring.split(x, order, devices) for x in data)
    Os, lse = ring.forward(*parts, causal)
    found = Os, *ring.backward(dOs, *parts, Os, lse, causal)
    for arrays_, right in zip(found, whole(*data, causal)):
        assert [list(own) for own in arrays_] == order
        assert all(x.ctx == d for own, d in zip(arrays_, devices) for x in own.values())
        joined = ring.join(arrays_)
        assert joined.dtype == data[0].dtype and joined.shape == right.shape
        bound = TOLERANCE[str(joined.dtype)] * abs(right).max()
        assert abs(joined - right).max() <= bound


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("make", [ring.contiguous, ring.zigzag])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_output_and_gradients_equal_whole_attention(k, make, causal, dtype):
    assert_same_as_whole(arrays(48, dtype=dtype), make(k), causal)


def test_scores_of_thousands_do_not_overflow():
    data = arrays(scale=30.0)
    Os, _ = ring.forward(
        *(ring.split(x, ring.zigzag(2), try_all_devices(2)) for x in data[:3])
    )
    assert numpy.allclose(ring.join(Os), whole(*data, False)[0], atol=1e-9)


def test_any_order_will_do_and_one_device_may_go_chunk_by_chunk():
    for order in ([[0, 1, 2, 3]], [[3, 0], [2, 1]], [[2], [0], [1]]):
        assert_same_as_whole(arrays(), order, True)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("make", [ring.contiguous, ring.zigzag])
def test_bytes_around_the_ring_are_those_of_the_formula(make, k):
    data, devices = arrays(48), try_all_devices(k)
    *parts, dOs = (ring.split(x, make(k), devices) for x in data)
    with traffic.count(devices) as there:
        Os, lse = ring.forward(*parts, True)
    with traffic.count(devices) as back:
        ring.backward(dOs, *parts, Os, lse, True)
    one = data[0].nbytes // k
    expected = 2 * (k - 1) * one, (4 * k - 2) * one if k > 1 else 0
    assert ring.bytes_sent(k, data[0].nbytes) == expected
    for moved, nbytes in zip((there, back), expected):
        assert moved.sent == moved.received == [nbytes] * k


def test_keys_and_values_shrink_as_one_over_k_and_scores_are_never_whole():
    n, heads = 512, 2
    q, k, v, _ = arrays(n, heads, 8, "float32")
    Qs = Ks = Vs = None
    for devices in map(devices_to_record, (1, 2, 4)):
        d = len(devices)
        Qs, Ks, Vs = ring.split(q, ring.zigzag(d), devices), None, None
        with storage.record(devices) as memory:
            Ks, Vs = (ring.split(x, ring.zigzag(d), devices) for x in (k, v))
        assert [*memory.held.values()] == [2 * k.nbytes // d] * d
        with storage.record(devices) as memory:
            ring.forward(Qs, Ks, Vs, True)
        # All that it makes is less than the scores of its own queries.
        assert d == 1 or max(memory.peak.values()) < 4 * heads * n * n // d


def test_the_pairs_of_a_round():
    # Rows are rounds, columns devices. Contiguous: device 0 soon has nothing to do.
    assert ring.work(ring.contiguous(3), causal=True) == [
        [1, 1, 1],
        [0, 1, 1],
        [0, 0, 1],
    ]
    assert ring.work(ring.zigzag(3), causal=True) == [[3, 3, 3], [2, 2, 2], [2, 2, 2]]
    assert ring.work(ring.zigzag(2), causal=False) == [[4, 4], [4, 4]]


@pytest.mark.parametrize("k", range(1, 9))
def test_zigzag_is_the_same_work_for_all_and_half_of_it(k):
    rows = ring.work(ring.zigzag(k), causal=True)
    assert all(len({*row}) == 1 for row in rows)
    assert sum(map(sum, rows)) == k * (2 * k + 1)  # of (2k)² pairs


@pytest.mark.parametrize("n, order, message", [
    (10, ring.zigzag(2), "10 positions .* 4 equal chunks: pad to 12"),
    (3, ring.zigzag(2), "3 positions .* 4 equal chunks: pad to 4"),
    (8, ring.contiguous(4), "lists of one length for 2 devices"),
    (8, [[0], [1, 2]], "lists of one length for 2 devices"),
    (8, [], "lists of one length for 2 devices"),
    (8, [[], []], "each chunk once"),
    (8, [[0], [2]], r"the order \[\[0\], \[2\]\] must have each chunk once"),
])
def test_what_cannot_be_cut_is_refused(n, order, message):
    with pytest.raises(ValueError, match=message):
        ring.split(numpy.zeros((1, n, 2)), order, try_all_devices(2))


def test_a_device_attends_to_its_own_keys_while_their_copies_are_on_their_way():
    data = arrays(8, dtype="float32")
    *parts, dOs = (ring.split(x, ring.contiguous(2), TWO) for x in data)
    with held(*TWO):
        Os, lse = ring.forward(*parts)
        ring.backward(dOs, *parts, Os, lse)
    for device in TWO:
        did = done_alone(lambda: ring.forward(*parts), device, TWO)
        assert did.count("batch_dot") == 2
    for lane in order_on(TWO, lambda: ring.forward(*parts)):
        work = [name for name in lane if name in ("CopyCPU2CPU", "batch_dot")]
        assert work == ["CopyCPU2CPU"] * 2 + ["batch_dot"] * 4
