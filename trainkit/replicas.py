"""Data parallelism with Gluon: a network on several devices, and on several workers."""

import mxnet as mx
import numpy
from mxnet import autograd, gluon

from d2l_ext.data_parallel.allreduce import allreduce
from d2l_ext.data_parallel.minibatch import split_batch
from d2l_ext.kvstore.local_sgd import LocalSGD, sum_over
from d2l_ext.memory import activations as again
from d2l_ext.memory.activations import pieces

from . import resume
from .networks import is_random


class Replicas:
    """A network on all `devices`, and the `gluon.Trainer` that keeps them equal.

    `net`: initialized on `devices` (`networks.build`). `optimizer`,
    `optimizer_params`: as in `gluon.Trainer`. `kv_store`: `'local'`, `'device'`, or
    None for `allreduce`, a function of this library. `compression`: the Trainer's
    `compression_params`. `work_load_list`: as in `split_batch`. `seed`: of the
    numbers that the network draws, such as dropout. `update_on_kvstore`: the Trainer's.
    `accumulate`: the number of pieces of each device's examples, taken one after
    another. `recompute`: whether backward recomputes activations, with the layers of
    `net` in segments; dropout then draws different numbers.

    On one device Gluon creates no store, whatever `kv_store` is.
    """

    measure = "accuracy"  # the name of the held-out result

    def __init__(self, net, devices, optimizer="sgd", optimizer_params=None,
                 kv_store="device", compression=None, work_load_list=None,
                 seed=0, update_on_kvstore=None, accumulate=1,
                 recompute=False, allreduce=allreduce):
        self.net, self.devices, self.work_load_list = net, devices, work_load_list
        self.params = list(net.collect_params().values())
        self.trainer = gluon.Trainer(self.params, optimizer, optimizer_params or {},
                                     kvstore=kv_store,
                                     compression_params=compression,
                                     update_on_kvstore=update_on_kvstore)
        self.loss = gluon.loss.SoftmaxCrossEntropyLoss()
        self.sums_itself = kv_store is None and len(devices) > 1
        self.allreduce = allreduce
        self.seed, self.is_random = seed, is_random(net)
        self.accumulate, self.parts = accumulate, again.segments(net) * recompute
        if accumulate > 1:
            net.collect_params().setattr("grad_req", "add")
        if recompute:  # a plan for all steps would keep the memory that this saves
            net.hybridize(False)

    def begin(self):
        """Prepare the first step, when the initial weights are set."""

    def train_batch(self, X, y, step=0, n=None):
        """Take one step on the minibatch `X`, `y`, split over the devices.

        Gradients are summed over examples and devices, then divided by `n`, by default
        the number of examples. `step`: the number of the step; with the seed it decides
        the numbers that dropout draws, so that a step depends on earlier ones only
        through the weights and the optimizer's states.

        Returns the summed loss of each shard, a list of arrays of one number. Waits
        only with `recompute`. Raises as `split_batch` does.
        """
        shards = list(zip(*split_batch(X, y, self.devices, self.work_load_list)))
        self._forget()
        number = min(self.accumulate, *(len(y) for _, y in shards))
        rounds = zip(*(pieces(X, y, number) for X, y in shards))
        seed = self.seed * 1_000_003 + step
        rounds = [self._backward(p, seed + 7_368_787 * i) for i, p in enumerate(rounds)]
        losses = [sum(parts[1:], parts[0]) for parts in zip(*rounds)]
        self._sum()
        self.trainer.step(n or len(y))
        return losses

    def _sum(self):
        """Sum the gradients if no store does."""
        for p in self.params if self.sums_itself else ():
            self.allreduce(p.list_grad())

    def _forget(self):
        """Set the gradients to zero if they accumulate."""
        for p in self.params if self.accumulate > 1 else ():
            for grad in p.list_grad():
                grad[:] = 0

    def _backward(self, shards, seed):
        """Compute gradients for one (X, y) per device; return the losses."""

        if self.parts:
            return again.backward(self.parts, shards, self.loss,
                                  lambda part: self._draw(seed + 104_729 * part))
        self._draw(seed)
        with autograd.record():
            losses = [self.loss(self.net(X), y).sum() for X, y in shards]
        autograd.backward(losses)
        return losses

    def _draw(self, seed):
        if self.is_random:
            mx.random.seed(seed % 2**31)

    def settle(self):
        """Finish after the last step; wait until all work is done."""
        mx.nd.waitall()

    def pack(self):
        """Return the arrays for a checkpoint of these replicas; see `resume.pack`."""
        return resume.pack(self.params, self.trainer)

    def unpack(self, arrays):
        """Restore what `pack` returned."""
        resume.unpack(arrays, self.params, self.trainer)

    def evaluate(self, batches, between=lambda: None):
        """Return the `measure`: the share of examples classified correctly, 0 to 1.

        `between` is called before each minibatch.
        """
        right = total = 0
        queued = []
        for X, y in batches:
            between()
            right, queued = right + sum(map(int, queued)), self._count_right(X, y)
            total += len(y)
        return (right + sum(map(int, queued))) / total

    def _count_right(self, X, y):
        # The last minibatch may have fewer examples than there are devices.
        devices = self.devices[: len(y)]
        loads = self.work_load_list and self.work_load_list[: len(y)]
        X_shards, y_shards = split_batch(X, y, devices, loads)
        return [
            (out.argmax(axis=1).astype("int32") == y).sum()
            for out, y in zip(self._outputs(X_shards), y_shards)
        ]

    def _outputs(self, shards):
        return [self.net(X) for X in shards]


class DistReplicas(Replicas):
    """A network on all `devices` of one worker of several.

    `kv`: a store of one of `ways.DIST_KV_STORES`. `batch_size`: of this worker.
    The other arguments: as in `Replicas`.

    A synchronous store sums the gradients of all workers, and each worker divides
    by all examples of the step and updates its own weights: it has the whole state
    for a checkpoint. An asynchronous store updates weights on the servers, separately
    for each worker's gradients, divided by the batch size. The optimizer's state is
    there, out of reach.
    """

    def __init__(self, kv, batch_size, net, devices, optimizer="sgd",
                 optimizer_params=None, seed=0, **options):
        self.kv, self.on_servers = kv, "async" in kv.type
        params = dict(optimizer_params or {})
        if self.on_servers:  # servers get it once, so it cannot change
            params["rescale_grad"] = 1 / batch_size
        super().__init__(net, devices, optimizer, params,
                         None if kv.type == "ring" else kv, seed=seed + 7919 * kv.rank,
                         update_on_kvstore=self.on_servers, **options)

    def begin(self):
        """Broadcast the weights of rank 0. Waits for all workers.

        By default the Trainer does this in its first step without waiting: sometimes
        the gradients overtake a weight, which on one worker is then a sum of
        gradients.
        """
        resume.make_store(self.trainer)
        mx.nd.waitall()
        self.kv._barrier()

    def train_batch(self, X, y, step=0, n=None):
        """Take one step, like that of `Replicas`; `X` and `y` may be empty.

        `n`: the number of examples of all workers in this step. The servers of an
        asynchronous store have a divisor of their own.
        """
        if len(y):
            return super().train_batch(X, y, step, 1 if self.on_servers else n)
        self._forget()
        if not self.on_servers:  # the others wait for this worker's gradients
            with autograd.record():  # of a loss that depends on no weight: zeros
                losses = [sum((0 * p.data(device)).sum() for p in self.params)
                          for device in self.devices]
            autograd.backward(losses)
            self._sum()
            self.trainer.step(n)
        return []

    def settle(self):
        """Finish after the last step; wait until all work is done.

        With an asynchronous store, also wait for all workers, and pull final weights.
        """
        mx.nd.waitall()
        if self.on_servers:
            self.kv._barrier()
            for i, p in enumerate(self.params):
                self.kv.pull(i, out=p.list_data(), priority=-i)
            mx.nd.waitall()


class RingReplicas(DistReplicas):
    """`DistReplicas` without servers: `kv` is a `ring.Ring`; each worker updates."""

    def __init__(self, kv, *args, **options):
        super().__init__(kv, *args, **options)
        sizes = [p.data(self.devices[0]).size for p in self.params]
        self.flat = kv.zeros(sum(sizes), self.params[0].dtype)
        self.parts_of_flat = numpy.split(self.flat, numpy.cumsum(sizes)[:-1])

    def begin(self):
        """Broadcast the weights of rank 0."""
        weights = [p.data(self.devices[0]) for p in self.params]
        for p, found in zip(self.params, self._exchange(self.kv.broadcast, weights)):
            p.set_data(found)

    def _sum(self):
        super()._sum()
        grads = [p.list_grad() for p in self.params]
        own = [of_devices[0] for of_devices in grads]
        for of_devices, found in zip(grads, self._exchange(self.kv.allreduce, own)):
            for grad in of_devices:
                grad[:] = found

    def _exchange(self, do, arrays):
        """Apply `do` to the arrays, concatenated, on the CPU."""
        for x, part in zip(arrays, self.parts_of_flat):
            part[:] = x.asnumpy().reshape(-1)
        do(self.flat)
        return [mx.np.array(part.reshape(x.shape), dtype=x.dtype, ctx=mx.cpu(0))
                for x, part in zip(arrays, self.parts_of_flat)]


class LocalReplicas(Replicas):
    """A network of one worker with its own optimizer, exchanged every H steps.

    `kv`: of type `dist_sync`. `outer`: `LocalSGD`'s arguments from `local_steps` on.
    """

    def __init__(self, kv, outer, *args, seed=0, **options):
        self.kv, self.outer = kv, outer
        super().__init__(*args, seed=seed + 7919 * kv.rank, update_on_kvstore=False,
                         **options)

    def begin(self):
        """Broadcast the weights of rank 0. Waits for all workers."""
        # This loads d2l, which takes a second.
        from d2l_ext.kvstore.dist_train import share

        replicas = [[p.data(device) for p in self.params] for device in self.devices]
        share(self.kv, replicas)
        self.local = LocalSGD(replicas[0], sum_over(self.kv), self.kv.num_workers,
                              *self.outer)

    def train_batch(self, X, y, step=0, n=None):
        """Take one step of this worker, like that of `Replicas`; `y` may be empty."""
        losses = super().train_batch(X, y, step) if len(y) else []
        self._then(self.local.step)
        return losses

    def _then(self, do):
        do()
        for p in () if self.local.steps else self.params:  # to its other devices
            p.set_data(p.data(self.devices[0]))

    def settle(self):
        """Make all workers equal by an exchange after the last step; wait."""
        if self.local.steps:
            self._then(self.local.exchange)
        mx.nd.waitall()
