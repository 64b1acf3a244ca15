"""The trainer's --accumulate and --recompute: the same step, in less memory."""

import d2l_ext  # noqa: F401, I001
import mxnet as mx
import numpy
import pytest
from mxnet import npx

from d2l_ext.memory import activations
from trainkit import networks
from trainkit.replicas import Replicas

npx.set_np()
RNG = numpy.random.RandomState(0)
IMAGES = mx.np.array(RNG.rand(13, 1, 28, 28), dtype="float32")
LABELS = mx.np.array(RNG.randint(0, 10, 13), dtype="int32")


def trained(name="lenet", k=2, **less):
    """The weights on each device, and the summed loss, after two steps."""
    devices = [mx.cpu(i) for i in range(k)]
    net = networks.build(name, (1, 28, 28), devices)
    model = Replicas(net, devices, optimizer_params={"learning_rate": 0.1}, **less)
    loss = [sum(map(float, model.train_batch(IMAGES, LABELS, i))) for i in range(2)]
    arrays = [w.asnumpy() for p in model.params for w in p.list_data()]
    return loss, arrays


@pytest.fixture
def passes(monkeypatch):
    """Examples of device 0 in each backward pass, and `again` where it recomputes."""
    found, plain, again = [], Replicas._backward, activations.backward

    def noted(self, shards, seed):
        found.append(len(shards[0][1]))
        return plain(self, shards, seed)

    monkeypatch.setattr(Replicas, "_backward", noted)
    monkeypatch.setattr(activations, "backward",
                        lambda *words: found.append("again") or again(*words))
    return found


@pytest.mark.parametrize("name, k, kv_store", [
    ("lenet", 1, "device"), ("lenet", 2, None), ("mlp", 2, "device")])
def test_pieces_and_recomputation_train_as_the_plain_step_does(
    name, k, kv_store, passes
):
    loss, plain = trained(name, k, kv_store=kv_store)
    again, recomputed = trained(name, k, kv_store=kv_store, recompute=True)
    assert again == loss
    assert all((a == b).all() for a, b in zip(plain, recomputed))
    n = -(-13 // k)
    assert passes == [n, n, *2 * [n, "again"]]
    for less in ({"accumulate": 4}, {"accumulate": 3, "recompute": True}):
        passes.clear()
        near, accumulated = trained(name, k, kv_store=kv_store, **less)
        sizes = [size for size in passes if size != "again"]
        assert (len(sizes), sum(sizes)) == (2 * less["accumulate"], 2 * n)
        assert len(passes) - len(sizes) == ("recompute" in less) * len(sizes)
        assert numpy.allclose(near, loss, rtol=1e-5)
        assert all(abs(a - b).max() < 1e-6 for a, b in zip(plain, accumulated))


def test_more_pieces_than_examples_are_refused(run, refused):
    flags = ["--devices", "cpu:0,cpu:1", "--batch-size", 16]
    refused("--accumulate", 9, *flags, why="--accumulate 9: a device has 8 examples")
    assert run("--accumulate", 8, "--recompute", "--num-examples", 32,
               "--num-epochs", 1, *flags)[0] == 0
