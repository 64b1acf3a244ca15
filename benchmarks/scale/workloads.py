"""Steps to measure: here, and below in the workers of a job.

Here each function returns an action that starts the step once. An action never waits;
`turns` waits, and reads the clock. In a worker, each returns the seconds of its steps.
"""

from time import perf_counter

import mxnet as mx
from mxnet import np, npx

from d2l_ext import tensor_parallel
from d2l_ext.data_parallel import get_params
from d2l_ext.data_parallel import lenet as model
from d2l_ext.data_parallel.allreduce import allreduce, allreduce_ring, allreduce_tree
from d2l_ext.data_parallel.minibatch import split_batch
from d2l_ext.data_parallel.step import forward_backward
from d2l_ext.devices import try_all_devices
from d2l_ext.kvstore import dist_train
from d2l_ext.pipeline import microbatch

from .cases import FLOAT32

npx.set_np()

#: The allreduces whose constants are fitted.
REDUCE = {"naive": allreduce, "tree": allreduce_tree, "ring": allreduce_ring}


def turns(actions, rounds, warm_up=1):
    """Return the seconds of every action, `rounds` times: a dict from name to list.

    `actions`: a dict. In each round every action has its turn: `warm_up` times without
    a clock, then once with. So a change of the machine's speed affects all alike,
    and no action pays for the caches that the one before has emptied.
    """
    seconds = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            for _ in range(warm_up):
                action()
            npx.waitall()
            start = perf_counter()
            action()
            npx.waitall()
            seconds[name].append(perf_counter() - start)
    return seconds


def copy(nbytes):
    """Copy an array to the next device."""
    here, there = try_all_devices(2)
    source, target = _array(nbytes, here), _array(nbytes, there)
    return lambda: source.copyto(target)


def add(nbytes, k=1):
    """Add an array to another, on each of `k` devices at once."""
    pairs = [(_array(nbytes, d), _array(nbytes, d)) for d in try_all_devices(k)]

    def action():
        for total, x in pairs:
            total[:] += x

    return action


def reduce(algorithm, k, nbytes):
    """Return an allreduce of `nbytes` per device."""
    data = [_array(nbytes, d) for d in try_all_devices(k)]
    return lambda: REDUCE[algorithm](data)


def store(kind, k, nbytes, compressed=False):
    """Push an array of `k` devices to a kvstore `kind`, and pull the sum.

    `compressed`: with two-bit gradients, which `device` knows and `local` does not.
    """
    kv, copies = mx.kv.create(kind), [_array(nbytes, d) for d in try_all_devices(k)]
    if compressed:
        kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    kv.init(0, copies[0])

    def action():
        kv.push(0, copies)
        kv.pull(0, out=copies)

    return action


def gradient(images, k=1):
    """Time LeNet's gradient for `images` images on each of `k`, without exchange."""
    replicas, devices = _replicas(k)
    X_shards, y_shards = zip(*[_images(images, d) for d in devices])
    return lambda: forward_backward(X_shards, y_shards, replicas)


def data_parallel(algorithm, k, batch, lr=0.01):
    """Return the step of `data_parallel.train_batch` with another allreduce."""
    replicas, devices = _replicas(k)
    X, y = _images(batch, devices[0])

    def action():
        forward_backward(*split_batch(X, y, devices), replicas)
        for copies in zip(*replicas):
            REDUCE[algorithm]([p.grad for p in copies])
        for p in (p for params in replicas for p in params):
            p[:] -= lr * p.grad / batch

    return action


def pipeline(make, blocks, rows, chunks, width):
    """Return a minibatch by micro-batches: stage i has `blocks[i]` dense blocks of
    `width`.

    `make`: `schedule.gpipe` or `one_f_one_b`. `rows`: examples of a micro-batch.
    """
    params = microbatch.init_dense(sum(blocks), width)
    stages, start = [], 0
    for device, count in zip(try_all_devices(len(blocks)), blocks):
        part = params[2 * start : 2 * (start + count)]
        stages.append(microbatch.Stage(microbatch.dense, part, device))
        start += count
    X = np.random.normal(size=(rows * chunks, width))
    schedule = make(len(blocks), chunks)
    return lambda: microbatch.gradients(stages, schedule, X, X, _squares)


def layerwise(k, rows, width, hidden):
    """Time a dense block, forward and backward, its `hidden` units over `k`."""
    shapes = [(width, hidden), (hidden,), (hidden, width), (width,)]
    params = [np.random.normal(scale=0.05, size=shape) for shape in shapes]
    devices = try_all_devices(k)
    parts = tensor_parallel.split_block(params, devices)
    Xs = tensor_parallel.replicate(np.random.normal(size=(rows, width)), devices)

    def action():
        Ys, values = tensor_parallel.forward(Xs, parts)
        tensor_parallel.backward(Ys, Xs, values, parts)

    return action


def _array(nbytes, device):
    return np.ones(nbytes // FLOAT32, ctx=device)


def _replicas(k):
    devices = try_all_devices(k)
    return [get_params(model.init_params(), d) for d in devices], devices


def _images(n, device):
    return np.random.uniform(size=(n, 1, 28, 28), ctx=device), np.zeros(n, ctx=device)


def _squares(outputs, y):
    return ((outputs - y) ** 2).sum() / 2


# In a worker of a job.


def compress(kv):
    """Compress gradients to two bits from here on, on all workers."""
    kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    kv._barrier()


def exchange(kv, case, arrays, nbytes, steps):
    """Return the seconds of each push and pull of `nbytes` in `arrays` arrays.

    `case`: a number of its own for each call: it makes the keys.
    """
    keys = [1000 * (case + 1) + i for i in range(arrays)]
    data = [np.ones(nbytes // FLOAT32 // arrays) for _ in keys]
    out = [np.zeros_like(x) for x in data]
    for key, x in zip(keys, out):
        kv.init(key, x)

    def step():
        for key, x, total in zip(keys, data, out):
            kv.push(key, x)
            kv.pull(key, out=total)

    return [_seconds(kv, step) for _ in range(steps)]


def train(kv, batches, steps):
    """Return the seconds of LeNet's steps, for each of `batches`; a worker's share."""
    devices = try_all_devices(1)
    replicas = [get_params(model.init_params(), devices[0])]
    dist_train.share(kv, replicas)
    return [_train(kv, batch, steps, replicas, devices) for batch in batches]


def _train(kv, batch, steps, replicas, devices):
    n = batch // kv.num_workers
    X, y = np.random.uniform(size=(n, 1, 28, 28)), np.zeros(n)

    def step():
        dist_train.train_batch(kv, X, y, batch, replicas, devices, 0.01)

    return [_seconds(kv, step) for _ in range(steps)]


def _seconds(kv, step):
    dist_train.finish(kv)  # all workers begin together
    start = perf_counter()
    step()
    npx.waitall()
    return perf_counter() - start
