"""The norm of a divided gradient is one device's, however it is divided."""

import d2l_ext  # noqa: F401, I001
import numpy
import pytest
from mxnet import autograd, gluon, np, npx

from d2l_ext.clinic.norms import clip, global_norm
from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices
from d2l_ext.meshes.mesh import Mesh

BARS = {"float64": 1e-12, "float32": 1e-6}
SHAPES = [(64, 37), (37,), (37, 10), (10,)]  # W1, b1, W2, b2


def gradient(dtype):
    rng = numpy.random.RandomState(3)
    return [(rng.randn(*shape) * 10.0 ** rng.randint(-4, 4)).astype(dtype)
            for shape in SHAPES]


def put(arrays, device):
    return [np.array(x, dtype=x.dtype, ctx=device) for x in arrays]


def zero(G, devices):
    """ZeRO: uneven chunks of all numbers, end to end."""
    whole = numpy.concatenate([g.ravel() for g in G])
    spans = traffic.spans(whole.size, len(devices))
    return [put([whole[a:b]], d) for (a, b), d in zip(spans, devices)], 1


def pipeline(G, devices):
    """Stages of unequal numbers of arrays; the last has what is left."""
    cuts = [*range(len(devices)), len(G)]
    return [put(G[a:b], d) for a, b, d in zip(cuts, cuts[1:], devices)], 1


def tensor(G, devices):
    """W1, b1 by columns, W2 by rows, and all of b2 everywhere."""
    W1, b1, W2, b2 = G
    k, parts = len(devices), []
    for (a, b), d in zip(traffic.spans(37, k), devices):
        parts.append(put([W1[:, a:b], b1[a:b], W2[a:b], b2], d))
    return parts, [[1, 1, 1, k] for _ in devices]


def data(G, devices):
    """Replicas, after their allreduce."""
    return [put(G, d) for d in devices], len(devices)


def one_device(G):
    return float(numpy.sqrt(sum((g.astype("float64") ** 2).sum() for g in G)))


@pytest.mark.parametrize("dtype", BARS)
@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("divide", [zero, pipeline, tensor, data])
def test_the_norm_is_one_devices(divide, k, dtype):
    G = gradient(dtype)
    parts, copies = divide(G, try_all_devices(k))
    norms = [float(norm) for norm in global_norm(parts, copies)]
    assert norms[0] == pytest.approx(one_device(G), rel=BARS[dtype])
    assert norms == norms[:1] * k  # the same bits


@pytest.mark.parametrize("dtype", BARS)
def test_on_a_mesh_of_data_and_tensor_each_number_counts_once(dtype):
    devices, G = try_all_devices(4), gradient(dtype)
    mesh = Mesh(devices, data=2, tensor=2)
    parts, copies = [None] * 4, [[2, 2, 2, 4]] * 4
    for group in mesh.groups("tensor"):
        for device, part in zip(group, tensor(G, group)[0]):
            parts[devices.index(device)] = part
    for norm in global_norm(parts, copies):
        assert float(norm) == pytest.approx(one_device(G), rel=BARS[dtype])


def test_a_million_small_numbers_in_single_precision():
    """Added in float32 they would be off by 2e-6, or by 1e-4 in a plain loop."""
    x = numpy.random.RandomState(0).randn(10**6).astype("float32")
    devices = try_all_devices(3)
    norm = float(global_norm(*zero([x], devices))[0])
    assert norm == pytest.approx(one_device([x]), rel=1e-7)


@pytest.mark.parametrize("dtype, size", [
    ("float16", 300), ("float16", 2**-14), ("float32", 1e20), ("float32", 1e-30),
    ("int32", 100_000)])
def test_squares_beyond_the_range_of_the_arrays_count(dtype, size):
    x = np.full(4, size, dtype=dtype)
    assert float(global_norm([[x]])[0]) == pytest.approx(2 * size, rel=1e-7)


@pytest.mark.parametrize("divide", [zero, pipeline, tensor, data])
@pytest.mark.parametrize("share", [0.5, 2.0])
def test_clipped_parts_are_parts_of_the_clipped_gradient(divide, share):
    G, devices = gradient("float64"), try_all_devices(3)
    norm = one_device(G)
    limit = share * norm
    parts, copies = divide(G, devices)
    before = [[x.asnumpy() for x in part] for part in parts]
    clip(parts, global_norm(parts, copies), limit)
    factor = min(1, share)
    for part, old in zip(parts, before):
        for x, y in zip(part, old):
            assert x.asnumpy() == pytest.approx(factor * y, rel=1e-12)
    assert float(global_norm(parts, copies)[0]) == pytest.approx(min(limit, norm))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_norm_that_is_not_finite_is_told_and_changes_nothing(bad):
    devices = try_all_devices(2)
    parts = [put([numpy.array([bad])], devices[0]), put([numpy.ones(1)], devices[1])]
    norms = global_norm(parts)
    assert not numpy.isfinite(float(norms[1]))
    clip(parts, norms, 1.0)
    assert float(parts[1][0]) == 1


def test_each_device_sends_eight_bytes():
    devices = try_all_devices(2)
    parts, copies = zero(gradient("float32"), devices)
    with traffic.count(devices) as moved:
        global_norm(parts, copies)
    assert moved.sent == [8, 8]


def test_what_does_not_fit_is_refused_with_the_numbers():
    one, two = try_all_devices(2)
    with pytest.raises(ValueError, match="no parts"):
        global_norm([])
    with pytest.raises(ValueError, match="part 1 lies on no device"):
        global_norm([[np.ones(1, ctx=one)], []])
    with pytest.raises(ValueError, match=r"part 0 lies on cpu\(0\), cpu\(1\)"):
        global_norm([[np.ones(1, ctx=one), np.ones(1, ctx=two)]])
    for copies in ([[1, 1]], [[0]], 0, 1.5, [[1.5]], [1], numpy.int64(0)):
        with pytest.raises(ValueError, match="copies is"):
            global_norm([[np.ones(1, ctx=one)]], copies)
    assert float(global_norm([[np.ones(8)]], numpy.int64(2))[0]) == 2
    with pytest.raises(ValueError, match="above 0, not 0"):
        clip([], [], 0)


def test_mxnets_own_clipping_of_summed_gradients_takes_the_limit_times_the_batch():
    """As the chapter says: `update` divides afterwards, and arrays are legacy."""
    npx.set_np()
    net, devices = gluon.nn.Dense(3, in_units=5), try_all_devices(2)
    net.initialize(ctx=devices)
    params = [*net.collect_params().values()]
    trainer = gluon.Trainer(params, "sgd", {"learning_rate": 1.0},
                            update_on_kvstore=False)
    with autograd.record():
        losses = [((net(np.ones((rows, 5), ctx=d)) - 9) ** 2).sum()
                  for rows, d in zip((6, 2), devices)]
    autograd.backward(losses)
    before = [p.data().asnumpy() for p in params]
    trainer.allreduce_grads()
    grads = [[p.grad(d) for p in params] for d in devices]
    with pytest.raises(TypeError, match="legacy"):
        gluon.utils.clip_global_norm(grads[0], 0.5 * 8)
    norms = [gluon.utils.clip_global_norm([g.as_nd_ndarray() for g in own], 0.5 * 8)
             for own in grads]
    trainer.update(8)
    assert norms[0] == norms[1] > 0.5 * 8
    step = [p.data().asnumpy() - x for p, x in zip(params, before)]
    assert one_device(step) == pytest.approx(0.5, rel=1e-6)
