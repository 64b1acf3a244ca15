"""A decoder divided over devices computes what it computes on one."""

import d2l_ext  # noqa: F401, I001

import numpy
import pytest
from held_devices import TWO, done_alone, held
from mxnet import autograd, np, npx

from d2l_ext.data_parallel import costs, traffic
from d2l_ext.devices import try_all_devices
from d2l_ext.tensor_parallel import transformer
from d2l_ext.tensor_parallel.divided_layers import SEQUENCE, TENSOR

npx.set_np()

WAYS = {"tensor": TENSOR, "sequence": SEQUENCE}
#: ‖a − b‖ in units of ‖b‖: for all gradients together. One array alone may have twice
#: that, where a norm's gradient is a small sum of large numbers.
TOLERANCE = {"float64": 1e-12, "float32": 1e-6}
T, BATCH, VOCAB = 12, 4, 29


def decoder(**sizes):
    return transformer.Decoder(**{"vocab": VOCAB, "width": 48, "heads": 4, **sizes})


def text(seed=0):
    return numpy.random.RandomState(seed).randint(VOCAB, size=(2, T, BATCH))


def by_autograd(sizes, dtype, masks=None):
    """Losses and gradients of the undivided decoder by MXNet's own autograd."""
    start = transformer.init_params(sizes, 0, dtype)
    params = {name: np.array(p, dtype=dtype) for name, p in start.items()}
    for p in params.values():
        p.attach_grad()
    tokens, targets = (np.array(v, dtype="int32") for v in text())
    with autograd.record():
        scores = transformer.scores(params, tokens, sizes, masks and [
            np.array(m, dtype=dtype) for m in masks])
        losses = -npx.pick(npx.log_softmax(scores, axis=-1), targets.reshape(-1))
        mean = losses.mean()
    mean.backward()
    return losses.asnumpy(), {name: p.grad.asnumpy() for name, p in params.items()}


def divided(sizes, dtype, k, way, masks=None):
    """The same over k devices: each device's losses, and the gradients together."""
    params = transformer.init_params(sizes, 0, dtype)
    parts = transformer.split(params, try_all_devices(k), sizes)
    losses, backward = transformer.loss(*text(), parts, sizes, way, masks)
    backward()
    grads = [{name: p.grad for name, p in part.items()} for part in parts]
    return [x.asnumpy() for x in losses], grads


def assert_close(found, expected, times=1):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    norm, bound = numpy.linalg.norm, TOLERANCE[str(expected.dtype)]
    assert norm(found - expected) <= times * bound * norm(expected)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("k", [1, 2, 3, 4])  # 4 heads over 3 devices: 1, 1, and 2
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("tied", [True, False])
def test_losses_and_all_gradients_equal_those_of_one_device(k, way, dtype, tied):
    sizes = decoder(tied=tied, dropout=0.1)
    masks = transformer.dropout_masks(sizes, T * BATCH, [0, 7])
    expected, gradients = by_autograd(sizes, dtype, masks)
    losses, grads = divided(sizes, dtype, k, WAYS[way], masks)
    for found in losses:
        assert_close(found, expected)
    joined = transformer.join(grads)
    assert joined.keys() == gradients.keys()
    for name, found in joined.items():
        assert_close(found, gradients[name], times=2)
    assert_close(*(numpy.concatenate([g[name].ravel() for name in gradients])
                   for g in (joined, gradients)))
    for name in ("end.gain", "0.mlp.shift"):  # whole on each device, with the same bits
        assert len({part[name].asnumpy().tobytes() for part in grads}) == 1


def test_dropout_drops_the_same_on_any_number_of_devices_and_another_next_time():
    sizes = decoder(dropout=0.25)
    masks = transformer.dropout_masks(sizes, 1000, [3, 1])
    again, later = (transformer.dropout_masks(sizes, 1000, [3, i]) for i in (1, 2))
    assert len(masks) == 5 and all((a == b).all() for a, b in zip(masks, again))
    assert not (masks[0] == masks[1]).all() and not (masks[0] == later[0]).all()
    assert abs(masks[0].mean() - 1) < 0.02
    assert numpy.unique(masks[0]).tolist() == [0, numpy.float32(4 / 3)]
    assert transformer.dropout_masks(decoder(), 1000, 0) is None


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("layers", [1, 3])
def test_a_block_needs_two_allreduces_each_way_and_the_ends_one(k, layers):
    """F11, and F12: in halves, the same bytes go; only norms' gradients are added."""
    sizes, devices = decoder(layers=layers), try_all_devices(k)
    one = costs.expected("ring", k, T * BATCH * 48 * 4)
    softmax = (k - 1) * 2 * T * BATCH * 4
    norms = costs.expected("ring", k, 2 * (2 * layers + 1) * 48 * 4)
    for way in (TENSOR, SEQUENCE):
        parts = transformer.split(transformer.init_params(sizes), devices, sizes)
        with traffic.count(devices) as there:
            _, backward = transformer.loss(*text(), parts, sizes, way)
        with traffic.count(devices) as back:
            backward()
        sums = 2 * layers + 1
        assert there.sent == [sums * nbytes + softmax for nbytes in one.sent]
        extra = sum(norms.sent) if way is SEQUENCE else 0
        assert sum(back.sent) == sums * sum(one.sent) + extra


def test_split_and_join_undo_each_other_and_heads_bound_the_devices():
    sizes = decoder(tied=False)
    params = transformer.init_params(sizes)
    parts = transformer.split(params, try_all_devices(3), sizes)
    assert [p["0.attend.qkv"].shape[0] for p in parts] == [36, 36, 72]  # 1, 1, 2 heads
    joined = transformer.join(parts)
    assert all((joined[name] == p).all() for name, p in params.items())
    with pytest.raises(ValueError, match="4 heads and 29 tokens.*over 5 devices"):
        transformer.split(params, [None] * 5, sizes)
    with pytest.raises(ValueError, match="48 columns cannot be divided into 5 heads"):
        transformer.init_params(decoder(heads=5))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_step_is_asked_for_while_the_devices_stand_still(way):
    """A device embeds its tokens, and needs the other's sum for the first layer."""
    sizes = decoder()
    parts = transformer.split(transformer.init_params(sizes), TWO, sizes)

    def step():
        transformer.loss(*text(), parts, sizes, way)[1]()

    with held(*TWO):
        step()
    for device in TWO:
        did = done_alone(step, device, TWO)
        assert did.count("Embedding") == 1 and "FullyConnected" not in did
