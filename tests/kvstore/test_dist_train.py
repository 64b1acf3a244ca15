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
from d2l_ext.kvstore.staleness import Tickets, staleness

npx.set_np()
DEADLINE = 600.0


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


def test_a_worker_that_runs_out_gets_a_minibatch_without_examples():
    (*_, last), (*_, nothing) = parts(5, 2, 2)
    assert (last, nothing) == (([4], 1), ([], 1))


# One worker's step


def step_of_a_single_worker(num_examples, k):
    """Weights after a step on `k` devices, over a store of this process."""
    X, y = examples(num_examples)
    devices = try_all_devices(k)
    params = [p.astype("float64") for p in lenet.init_params()]
    replicas = [get_params(params, d) for d in devices]
    kv = mx.kv.create("local")
    dist_train.share(kv, replicas)
    X, y = np.array(X, dtype="float64"), np.array(y)
    dist_train.train_batch(kv, X, y, num_examples, replicas, devices, 0.1)
    return [flat(replica) for replica in replicas]


@pytest.mark.parametrize("num_examples, k", [(7, 1), (7, 2), (2, 3)])
def test_a_step_over_a_store_is_the_step_without(num_examples, k):
    X, y = examples(num_examples)
    params = get_params([p.astype("float64") for p in lenet.init_params()], mx.cpu(0))
    X, y = np.array(X, dtype="float64"), np.array(y)
    data_parallel.train_batch(X, y, [params], [mx.cpu(0)], 0.1)
    for replica in step_of_a_single_worker(num_examples, k):
        numpy.testing.assert_allclose(replica, flat(params), rtol=0, atol=1e-9)


def test_gradients_of_no_examples_are_zero():
    devices = try_all_devices(2)
    replicas = [get_params(lenet.init_params(), d) for d in devices]
    dist_train.gradients(*map(np.array, examples(4)), replicas, devices)
    assert all(abs(flat([p.grad for p in r])).max() > 0 for r in replicas)
    X, y = examples(4)
    dist_train.gradients(X[:0], y[:0], replicas, devices)
    assert all(abs(flat([p.grad for p in r])).max() == 0 for r in replicas)


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
    results = launch.call(an_epoch, X, y, 16, 0.1, on_store, deadline=DEADLINE)
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


def count_to(kv, times):
    """Push ones, and only then look; then draw tickets."""
    optimizer = mx.optimizer.SGD(learning_rate=0.5)
    tickets = Tickets(kv, optimizer, key=1)
    optimizer.set_lr_mult({**optimizer.lr_mult, 0: -2.0})
    kv.set_optimizer(optimizer)
    kv.init(0, np.zeros(5))
    tickets.start()
    one, total = np.ones(5), np.zeros(5)
    for _ in range(times):
        kv.push(0, one)
    dist_train.finish(kv)
    kv.pull(0, out=total)
    total = total.tolist()
    for _ in range(times // 10):
        tickets.take()
    return total, tickets.numbers


def test_asynchronous_updates_are_all_counted_and_each_has_its_number():
    results = launch.call(count_to, 1000, num_workers=4, kv_type="dist_async",
                          deadline=DEADLINE)
    assert [total for total, _ in results] == [[4000.0] * 5] * 4
    behind = staleness([numbers for _, numbers in results])
    assert sum(map(len, behind)) == 4 * 99
