"""The work of the workers in these trials: training steps, each with its time."""

import hashlib
import time

from mxnet import np, npx, optimizer

from d2l_ext.data import load_arrays
from d2l_ext.data.sets import Batches
from d2l_ext.data_parallel import get_params, lenet
from d2l_ext.devices import try_all_devices
from d2l_ext.kvstore import dist_train


def train(kv, steps, batch_size=32, lr=0.1, pause=0.0):
    """Take `steps` steps of LeNet on this worker's share of the digits.

    `pause`: seconds of rest after each step.

    Returns `rank`, a fingerprint of all `weights`, and the `seconds` of each step.
    """
    data, devices = load_arrays("digits"), try_all_devices(1)
    batches = Batches(data.train_X, data.train_y, batch_size,
                      num_parts=kv.num_workers, part_index=kv.rank)
    params = get_params(lenet.init_params(), devices[0])
    dist_train.share(kv, [params])
    seconds = []
    for _, (X, y, n) in zip(range(steps), dist_train.minibatches(batches)):
        begin = time.perf_counter()
        dist_train.train_batch(kv, np.array(X), y, n, [params], devices, lr)
        npx.waitall()
        seconds.append(time.perf_counter() - begin)
        time.sleep(pause)
    text = b"".join(p.asnumpy().tobytes() for p in params)
    return {"rank": kv.rank, "weights": hashlib.sha256(text).hexdigest()[:16],
            "seconds": seconds}


def exchange(kv, sizes, steps, compress=False):
    """Push arrays of these `sizes` and pull them, `steps` times; nothing is computed.

    A barrier comes before each, which is not measured. Returns the seconds of each.
    """
    if compress:
        kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
        kv._barrier()
    if "async" in kv.type:  # it does not add up: it has to be told what to do
        kv.set_optimizer(optimizer.SGD(learning_rate=0.1))
    keys, seconds = [str(i) for i in range(len(sizes))], []
    arrays = [np.zeros(size) for size in sizes]
    gradients = [np.ones(size) for size in sizes]
    kv.init(keys, arrays)
    for _ in range(steps):
        npx.waitall()
        kv._barrier()
        begin = time.perf_counter()
        kv.push(keys, gradients)
        kv.pull(keys, out=arrays)
        npx.waitall()
        seconds.append(time.perf_counter() - begin)
    return seconds


def for_a_while(kv, size, seconds):
    """Push and pull an array of `size` for `seconds`; return the number of times.

    In a synchronous store no worker may stop before another: there, all do as many
    steps as worker 0, which says when to stop by what it pushes.
    """
    if "async" in kv.type:
        kv.set_optimizer(optimizer.SGD(learning_rate=0.1))
    array, last = np.zeros(size), np.zeros(1)
    kv.init(["a", "last"], [array, last])
    kv._barrier()
    steps, end = 0, time.perf_counter() + seconds
    while True:
        stop = time.perf_counter() > end
        if "async" in kv.type:
            if stop:
                return steps
        else:
            kv.push("last", np.full(1, float(stop and kv.rank == 0)))
            kv.pull("last", out=last)
            if float(last) > 0:
                return steps
        kv.push("a", np.ones(size))
        kv.pull("a", out=array)
        npx.waitall()
        steps += 1


def at(kv, second, value):
    """Push and pull once, a tenth of a second into this second of the epoch.

    Returns what came back, and after how many seconds.
    """
    array = np.zeros(3)
    kv.init("a", array)
    kv._barrier()
    time.sleep(max(0.0, second + 0.1 - time.time()))
    begin = time.perf_counter()
    kv.push("a", np.full(3, value + kv.rank))
    kv.pull("a", out=array)
    return {"got": array.tolist(), "seconds": time.perf_counter() - begin}
