"""The work of a worker in these jobs: steps, and few exchanges."""

import time

from mxnet import npx

from d2l_ext.data_parallel import get_params
from d2l_ext.devices import try_all_devices
from d2l_ext.kvstore import dist_train
from d2l_ext.kvstore.local_sgd import LocalSGD, sum_over

from . import work


def train(kv, exchanges, local_steps, outer_lr=1.0, outer_mom=0.0, lr=0.1,
          pauses=(0, 0)):
    """Train for `exchanges` exchanges of a job; return times and losses.

    `local_steps`: those of each worker, a list; 0 instead: gradients are exchanged,
    in every step. `pauses`: seconds that each worker rests after a step.

    Returns `rank`, and of each exchange, from before the first: the `seconds` until
    then, and, on rank 0, the `losses`, the mean over all digits.
    """
    device, rank = try_all_devices(1)[0], kv.rank
    params = get_params(work.init_params(), device)
    dist_train.share(kv, [params])
    alone = local_steps[rank] if local_steps else 1
    local = LocalSGD(params, sum_over(kv), kv.num_workers, alone, outer_lr, outer_mom)
    minibatches = work.forever(work.shares(kv.num_workers)[rank])
    seen, begin = [[0.0, [p.copy() for p in params]]], time.perf_counter()
    for _ in range(exchanges):
        for _ in range(alone):
            X, y = next(minibatches)
            if local_steps:
                work.step(X, y, params, lr)
                local.step()
            else:
                n = kv.num_workers * len(y)
                dist_train.train_batch(kv, X, y, n, [params], [device], lr,
                                       work.net)
            npx.waitall()
            time.sleep(pauses[rank])
        seen.append([time.perf_counter() - begin, [p.copy() for p in params]])
    dist_train.finish(kv)
    losses = [work.mean_loss(p, device) for _, p in seen] if rank == 0 else []
    return {"rank": rank, "losses": losses, "seconds": [t for t, _ in seen]}
