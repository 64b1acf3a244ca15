"""What a program asks of a kvstore is written down, and done all the same."""

import d2l_ext  # noqa: F401, I001
import mxnet as mx
import pytest
from mxnet import autograd, gluon, nd, np, npx

from d2l_ext.kvstore import keys
from d2l_ext.devices import try_all_devices

npx.set_np()


def net(devices):
    block = gluon.nn.Dense(1, in_units=2)
    block.initialize(mx.init.One(), ctx=devices)
    return block


def calls_of_a_step(kv, on_store):
    devices = try_all_devices(2)
    block = net(devices)
    with keys.record(kv) as calls:
        trainer = gluon.Trainer(block.collect_params(), "sgd", kvstore=kv,
                                update_on_kvstore=on_store)  # fmt: skip
        with autograd.record():
            losses = [block(np.ones((1, 2), ctx=d)).sum() for d in devices]
        for loss in losses:
            loss.backward()
        trainer.step(2)
        npx.waitall()  # before the store goes
    return calls


@pytest.mark.parametrize("kind", ["local", "device"])
@pytest.mark.parametrize("on_store", [True, False])
def test_a_trainer_broadcasts_once_and_then_pushes_and_pulls_each_key(kind, on_store):
    calls = calls_of_a_step(mx.kv.create(kind), on_store)
    assert calls[:on_store] == ["set_optimizer"] * on_store
    assert calls[on_store:] == ["broadcast 0", "broadcast 1", "pushpull 0",
                                "pushpull 1"]  # fmt: skip


def test_the_recorded_calls_reach_the_store():
    kv, out = mx.kv.create("local"), nd.zeros(2)
    with keys.record(kv) as calls:
        kv.init("a", nd.ones(2))
        kv.push(key="a", value=nd.array([3, 4]))
        kv.pull("a", out=out)
    assert calls == ["init a", "push a", "pull a"]
    assert out.asnumpy().tolist() == [3, 4]


def test_after_the_block_nothing_is_recorded():
    kv = mx.kv.create("local")
    with keys.record(kv) as calls, pytest.raises(KeyError):
        raise KeyError
    kv.init("a", nd.ones(2))
    assert calls == [] and "init" not in vars(kv)
