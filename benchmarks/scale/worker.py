"""What a worker of a job measures: the exchange alone, and steps of LeNet."""

from time import perf_counter

from mxnet import np, npx

from d2l_ext.data_parallel import get_params, lenet
from d2l_ext.devices import try_all_devices
from d2l_ext.kvstore import dist_train

FLOAT32 = 4  # bytes


def compress(kv):
    """Two-bit gradients from here on, on all workers."""
    kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    kv._barrier()


def exchange(kv, case, arrays, nbytes, steps):
    """Seconds of each push and pull of `nbytes` in `arrays` arrays.

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
    """Seconds of each step of LeNet, for each of `batches`; this worker has a share."""
    devices = try_all_devices(1)
    replicas = [get_params(lenet.init_params(), devices[0])]
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
