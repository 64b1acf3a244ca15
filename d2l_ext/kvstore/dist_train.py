"""Data-parallel training by several workers over a distributed kvstore."""

from mxnet import npx

from .. import lazy
from ..data.sets import minibatches  # noqa: F401  (of this lesson)
from ..data_parallel.lenet import lenet
from ..data_parallel.minibatch import split_batch
from ..data_parallel.step import forward_backward

d2l = lazy.module("d2l.mxnet")


def share(kv, device_params):
    """Broadcast rank 0's values to all replicas of all workers.

    `kv`: a distributed kvstore. `device_params[c]`: the list of parameters on
    device c of this worker, overwritten. Parameter i gets the key i. Every worker
    must call this: `kv.init` waits for all of them.
    """
    for i, p in enumerate(device_params[0]):
        kv.init(i, p)
    _pull(kv, device_params)
    # The store still holds weights. The first push may replace them with a sum
    # of gradients, so no worker may push before all have pulled.
    finish(kv)


def finish(kv):
    """Wait until all workers have called this and earlier pushes are in the store.

    The barrier alone does not wait for pushes that this worker's engine has yet to
    send.
    """
    npx.waitall()
    kv._barrier()


def gradients(X, y, device_params, devices, net=lenet):
    """Leave the gradient of the summed loss over `X`, `y` in the replicas' `grad`.

    `X` (n, …) and `y` (n,): this worker's minibatch, split over `devices`; `n` may
    be smaller than the number of devices, even 0: the remaining gradients are
    zero. `net(X, params)`: the scores, default LeNet.
    """
    for params in device_params[len(X) :]:
        for p in params:
            p.grad[:] = 0
    if len(X) == 0:
        return
    busy = devices[: len(X)]
    forward_backward(*split_batch(X, y, busy), device_params, net)


def train_batch(kv, X, y, n, device_params, devices, lr, net=lenet):
    """Take one synchronous step: the store sums, every worker updates its replicas in
    place.

    `kv`: of type `dist_sync`, without an optimizer. `n`: examples of all workers
    in this step; `lr`: learning rate, for the mean gradient over them. The others
    as in `gradients`. Waits for all workers, at the latest when a result is read.
    """
    gradients(X, y, device_params, devices, net)
    for i in range(len(device_params[0])):
        grads = [params[i].grad for params in device_params]
        kv.push(i, grads)  # summed over this worker's devices, then sent
        kv.pull(i, out=grads)  # the sum over all workers
    for params in device_params:
        d2l.sgd(params, lr, n)


def train_batch_on_store(kv, X, y, device_params, devices, net=lenet):
    """Take one step with an optimizer on the store: push gradients, pull weights.

    `kv`: any type with `dist`, after `kv.set_optimizer`; the optimizer's
    `rescale_grad` divides by the examples of a step. The others as in `gradients`.
    Afterwards `p.grad` is not a gradient: with one CPU device per worker the store
    receives the weights in the very buffer that was sent.
    """
    gradients(X, y, device_params, devices, net)
    for i in range(len(device_params[0])):
        kv.push(i, [params[i].grad for params in device_params])
    _pull(kv, device_params)


def _pull(kv, device_params):
    for i in range(len(device_params[0])):
        kv.pull(i, out=[params[i] for params in device_params])
