"""The steps that `in_step.py` times, in each worker of a job."""

from time import perf_counter

from mxnet import np, npx
from mxnet import optimizer as optimizers

from d2l_ext.data_parallel import get_params, lenet
from d2l_ext.devices import try_all_devices
from d2l_ext.kvstore import dist_train


def exchange(kv, sizes, steps, num_devices, on_store):
    """Return the seconds of each of `steps` steps: push gradients, pull the result.

    `sizes`: elements of the arrays, float32. `on_store`: the store updates.
    """
    devices = try_all_devices(num_devices)
    arrays = [[np.zeros(size, ctx=device) for device in devices] for size in sizes]
    if on_store:
        kv.set_optimizer(optimizers.SGD(learning_rate=0.1))
    for key, copies in enumerate(arrays):
        kv.init(key, copies[0])
    seconds = []
    for _ in range(steps):
        dist_train.finish(kv)
        begin = perf_counter()
        for key, copies in enumerate(arrays):
            kv.push(key, copies)
            kv.pull(key, out=copies)
        npx.waitall()
        seconds.append(perf_counter() - begin)
    return seconds


def train(kv, num_images, steps, on_store):
    """Return the seconds of each of `steps` steps of LeNet on this worker's share of a
    minibatch.

    `kv`: None for one machine without a store. `num_images`: of all workers.
    """
    devices = try_all_devices(1)
    replicas = [get_params(lenet.init_params(), devices[0])]
    n = num_images // (kv.num_workers if kv else 1)
    X, y, seconds = np.ones((n, 1, 28, 28)), np.zeros(n), []
    if on_store:
        rescale = 1 / num_images
        kv.set_optimizer(optimizers.SGD(learning_rate=0.01, rescale_grad=rescale))
    if kv:
        dist_train.share(kv, replicas)
    for _ in range(steps):
        begin = perf_counter()
        if on_store:
            dist_train.train_batch_on_store(kv, X, y, replicas, devices)
        elif kv:
            dist_train.train_batch(kv, X, y, num_images, replicas, devices, 0.01)
        else:
            dist_train.gradients(X, y, replicas, devices)
            for p in replicas[0]:
                p -= 0.01 / num_images * p.grad
        npx.waitall()
        seconds.append(perf_counter() - begin)
    return seconds
