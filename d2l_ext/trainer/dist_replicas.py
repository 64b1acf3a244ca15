"""The replicas of one worker, kept equal to those of the others by a `dist_*` store."""

import os

import mxnet as mx
from mxnet import autograd

from .replicas import Replicas

#: The stores that need a job; MXNet reads `dist_device_sync` as `dist_sync_device`.
KV_STORES = ("dist_sync", "dist_sync_device", "dist_device_sync", "dist_async",
             "dist_async_device", "dist_device_async")  # fmt: skip


def check_job(kind):
    """Raise `ValueError` when this process is no worker of a job."""
    if os.environ.get("DMLC_ROLE") != "worker":
        raise ValueError(
            f"--kv-store {kind} needs a job of workers and servers: python -m "
            f"pslaunch -n 2 -s 1 python -m d2l_ext.train --kv-store {kind} …"
        )


class DistReplicas(Replicas):
    """A network on all `devices` of one worker of several.

    `kv`: a store of one of `KV_STORES`. `part`: the `Part` that is trained on.
    Everything else as in `Replicas`.

    A synchronous store sums the gradients of all workers, and each worker divides
    by all examples of the step and updates its own weights: a checkpoint finds the
    whole state there. An asynchronous store updates weights on the servers, with each
    worker's gradients by themselves, divided by the batch size. The optimizer's
    state is there, out of reach.
    """

    def __init__(self, net, devices, kv, part, optimizer="sgd", optimizer_params=None,
                 work_load_list=None, seed=0):  # fmt: skip
        self.kv, self.part, self.on_servers = kv, part, "async" in kv.type
        params = dict(optimizer_params or {})
        if self.on_servers:  # they are told once, so the divisor can't change
            params["rescale_grad"] = 1 / part.batch_size
        super().__init__(net, devices, optimizer, params, kv_store=kv,
                         work_load_list=work_load_list, seed=seed + 7919 * kv.rank,
                         update_on_kvstore=self.on_servers)  # fmt: skip

    def begin(self):
        """Give all workers the weights of rank 0. Waits for all of them.

        Left to itself, the Trainer does this in its first step, and goes on without
        waiting: now and then the gradients overtake a weight, which then is the sum
        of gradients on one worker.
        """
        if not self.trainer._kv_initialized:
            self.trainer._init_kvstore()
        if self.trainer._params_to_init:
            self.trainer._init_params()
        mx.nd.waitall()
        self.kv._barrier()

    def train_batch(self, X, y, step=0):
        """One step, as that of `Replicas`; `X` and `y` may have no examples."""
        if len(y):
            return super().train_batch(X, y, step)
        if not self.on_servers:  # the others wait for this worker's gradients
            with autograd.record():  # of a loss that depends on no weight: zeros
                losses = [sum((0 * p.data(device)).sum() for p in self.params)
                          for device in self.devices]  # fmt: skip
            autograd.backward(losses)
            self.trainer.step(self.divisor(0, step))
        return []

    def divisor(self, num_examples, step):
        """The examples of all workers in this step; the servers have their own."""
        return 1 if self.on_servers else self.part.together(step % len(self.part))

    def settle(self):
        """After the last step: wait for all workers, and take the final weights."""
        mx.nd.waitall()
        if self.on_servers:
            self.kv._barrier()
            for i, p in enumerate(self.params):
                self.kv.pull(i, out=p.list_data(), priority=-i)
            mx.nd.waitall()
