"""Several workers do what one machine does; real jobs, each under a deadline."""

import d2l_ext  # noqa: F401, I001
import hashlib

import mxnet as mx
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mxnet import np, npx
from recorded_store import RecordedStore, note_waits

from d2l_ext import data_parallel
from d2l_ext.kvstore import dist_train
import pslaunch as launch
from d2l_ext.data_parallel import lenet
from d2l_ext.data.sets import Batches
from d2l_ext.data_parallel import get_params
from d2l_ext.devices import try_all_devices

npx.set_np()


def examples(n, seed=0):
    rng = numpy.random.RandomState(seed)
    return rng.rand(n, 1, 28, 28).astype("float32"), rng.randint(0, 10, n)


def flat(arrays):
    return numpy.concatenate([a.asnumpy().ravel() for a in arrays])


# Shards


def parts(num_examples, batch_size, k):
    """Per worker: [(numbers of its examples, n), …]."""
    X = numpy.arange(num_examples)
    return [
        [
            ([int(x) for x in X_batch], n)
            for X_batch, _, n in dist_train.minibatches(
                Batches(X, X, batch_size, num_parts=k, part_index=i)
            )
        ]
        for i in range(k)
    ]


@given(st.integers(1, 5), st.integers(1, 7), st.data())
def test_workers_take_equally_many_steps_through_disjoint_complete_parts(k, b, data):
    num_examples = data.draw(st.integers(k, 60))
    workers = parts(num_examples, b, k)
    single = parts(num_examples, k * b, 1)[0]
    assert {len(worker) for worker in workers} == {len(single)}
    for step, (whole, n) in enumerate(single):
        together = [x for worker in workers for x in worker[step][0]]
        assert sorted(together) == whole
        assert {worker[step][1] for worker in workers} == {n} == {len(whole)}


# One worker's step


def test_nobody_pushes_before_everybody_has_pulled_the_first_weights(monkeypatch):
    kv, replicas = RecordedStore(), [[np.zeros(1), np.zeros(2)]]
    note_waits(monkeypatch, kv.calls)
    dist_train.share(kv, replicas)
    assert kv.calls == ["init 0", "init 1", "pull 0", "pull 1", "wait", "barrier"]


# Jobs


def an_epoch(kv, X, y, batch_size, lr, on_store):
    """Hashes of the weights after every step, and the last weights of each device."""
    devices = try_all_devices(2)
    params = [p.astype("float64") * (1 + kv.rank) for p in lenet.init_params()]
    replicas = [get_params(params, d) for d in devices]
    batches = Batches(X, y, batch_size, num_parts=kv.num_workers, part_index=kv.rank)
    if on_store:
        rescale = 1 / (batch_size * kv.num_workers)
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=lr, rescale_grad=rescale))
    dist_train.share(kv, replicas)
    hashes = []
    for X_batch, y_batch, n in dist_train.minibatches(batches):
        X_batch = np.array(X_batch, dtype="float64")
        if on_store:
            dist_train.train_batch_on_store(kv, X_batch, y_batch, replicas, devices)
        else:
            dist_train.train_batch(kv, X_batch, y_batch, n, replicas, devices, lr)
        values = b"".join(p.asnumpy().tobytes() for p in replicas[1])
        hashes.append(hashlib.sha256(values).hexdigest())
    return hashes, replicas[0], replicas[1]


@pytest.mark.parametrize("num_examples, on_store", [(65, False), (64, True)])
def test_two_workers_end_where_one_machine_does(num_examples, on_store):
    X, y = examples(num_examples)
    results = launch.call(an_epoch, X, y, 16, 0.1, on_store, deadline=600)
    params = get_params([p.astype("float64") for p in lenet.init_params()], mx.cpu(0))
    for X_batch, y_batch in Batches(X, y, 32):
        X_batch = X_batch.astype("float64")
        data_parallel.train_batch(X_batch, y_batch, [params], [mx.cpu(0)], 0.1)
    one = flat(params)
    assert results[0][0] == results[1][0]  # the same weights in every step
    assert len(results[0][0]) == (num_examples + 31) // 32
    for _, *replicas in results:
        for replica in replicas:
            weights = numpy.concatenate([p.ravel() for p in replica])
            assert numpy.linalg.norm(weights - one) < 1e-6 * numpy.linalg.norm(one)
