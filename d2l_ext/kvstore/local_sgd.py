"""Exchanging less often: a worker takes H steps alone, then all workers average.

    alone, H times   weights -= lr * gradient      (or a step of any inner optimizer)
    together         drift    = mean over the workers of (start - weights)
                     velocity = momentum * velocity + drift
                     start    = start - outer_lr * (drift + momentum * velocity)
                     weights  = start

With an outer rate of 1 and no momentum, the workers take the mean of their weights:
*local SGD*. With momentum, an outer optimizer, Nesterov's, uses their mean drift as a
gradient: *DiLoCo*. An exchange moves the same bytes as an exchange of gradients.
"""

import math

from ..checks import whole_number


class LocalSGD:
    """A worker's state between two exchanges, and the exchange.

        local = LocalSGD(params, sum_over(kv), kv.num_workers, local_steps=16)
        for X, y in batches:
            ...  # a step of this worker, which changes params
            local.step()

    `params`: this worker's arrays, changed in place, at first the same on all workers.
    `total`: a function that takes a list of arrays on each worker, and returns the list
    of their sums over the `num_workers` workers. `local_steps`: H. It may be smaller on
    a slow worker; the number of exchanges must be the same on all. `outer_lr`: above 0,
    default 1. `outer_mom`: at least 0 and below 1, default 0.

    `exchanges`: their number so far. `steps`: the steps since the last one.
    Raises `ValueError` for a number out of these ranges.
    Source: Stich, "Local SGD Converges Fast and Communicates Little", 2019; Douillard
    et al., "DiLoCo: Distributed Low-Communication Training of Language Models", 2023.
    Developed in the chapter *Exchanging less often*.
    """

    def __init__(self, params, total, num_workers, local_steps, outer_lr=1.0,
                 outer_mom=0.0):
        whole_number("num_workers", num_workers)
        whole_number("local_steps", local_steps)
        if not 0 < outer_lr < math.inf:
            raise ValueError(f"outer_lr must be a positive number, not {outer_lr!r}")
        if not 0 <= outer_mom < 1:
            raise ValueError(
                f"outer_mom must be at least 0 and below 1, not {outer_mom!r}"
            )
        self.params, self.total, self.num_workers = params, total, num_workers
        self.local_steps, self.outer = local_steps, (outer_lr, outer_mom)
        self.start = [p.copy() for p in params]
        self.velocity = [p * 0 for p in params]
        self.steps = self.exchanges = 0

    def step(self):
        """Count a step of this worker; exchange after every `local_steps` steps."""
        self.steps += 1
        if self.steps == self.local_steps:
            self.exchange()

    def exchange(self):
        """Average over all workers, which must all call this. Waits as `total` does."""
        drifts = self.total([old - p for old, p in zip(self.start, self.params)])
        for p, old, drift, v in zip(self.params, self.start, drifts, self.velocity):
            outer_step(old, drift / self.num_workers, v, *self.outer)
            p[:] = old
        self.steps, self.exchanges = 0, self.exchanges + 1


def outer_step(start, drift, velocity, lr=1.0, mom=0.0):
    """Take Nesterov's step from `start` along `drift`, a mean over workers; all in
    place.

    Three arrays of one shape; `velocity` begins with zeros. Developed in the chapter
    *Exchanging less often*.
    """
    velocity *= mom
    velocity += drift
    start -= lr * (drift + mom * velocity)


def sum_over(kv):
    """Return a `total` for `LocalSGD` over `kv`, of type `dist_sync`, without an
    optimizer.

    Array i is summed under key i, which `dist_train.share` has initialized.
    """

    def total(arrays):
        for i, array in enumerate(arrays):
            kv.push(i, array)
            kv.pull(i, out=array)
        return arrays

    return total
