"""Minibatches, and their division among workers."""

from math import ceil
from numbers import Integral

import mxnet as mx
import numpy
from mxnet import np

from ..checks import whole_number


class Batches:
    """Minibatches of `X` and `y`: arrays of `mxnet.np` on `mx.cpu(0)`.

    `X` (n, …), delivered as float32; `y` (n,), delivered as int32; NumPy arrays.
    `batch_size`: examples per minibatch; the last one holds what is left.
    `shuffle`, `seed`: every `iter()` is a new epoch, in an order that follows
    from `seed` and the number of the epoch alone; `epoch` is the next one's
    number and may be set. `num_parts`, `part_index`: which of how many workers
    this is, default the only one. The parts of an epoch have no example in
    common, are complete, and differ in size by one at most. Worker i takes each
    `num_parts`-th example of the epoch's order, so that the k-th minibatches of
    all workers together are the k-th of a single one `num_parts` times as large.

    `len()` is the number of minibatches, `own` that of the examples of this part, and
    `num_steps` that of the largest part's minibatches: the steps of all workers.
    Raises `ValueError` for unequal lengths of `X` and `y`, a `batch_size` or
    `num_parts` below 1 or fractional, a `part_index` out of range, and a part without
    examples.
    """

    def __init__(self, X, y, batch_size, shuffle=False, seed=0, num_parts=1,
                 part_index=0):  # fmt: skip
        if len(X) != len(y):
            raise ValueError(
                f"X has {len(X)} examples and y has {len(y)}: "
                "every example needs one label"
            )
        whole_number("batch_size", batch_size)
        whole_number("num_parts", num_parts)
        if not isinstance(part_index, Integral) or not 0 <= part_index < num_parts:
            raise ValueError(
                f"part_index={part_index!r}: {num_parts} parts are numbered from 0 "
                f"to {num_parts - 1}"
            )
        if part_index >= len(X):
            raise ValueError(
                f"part {part_index} of {num_parts} would be empty: there are only "
                f"{len(X)} examples. Use at most as many parts as examples."
            )
        self.X, self.y = numpy.asarray(X), numpy.asarray(y)
        self.batch_size, self.shuffle, self.seed = batch_size, shuffle, seed
        self.num_parts, self.part_index = num_parts, part_index
        self.epoch = 0
        self.own = len(range(part_index, len(X), num_parts))
        self.num_steps = ceil(len(X) / (num_parts * batch_size))

    def __len__(self):
        return ceil(self.own / self.batch_size)

    def __iter__(self):
        order = self._order(self.epoch)
        self.epoch += 1
        return self._minibatches(order)

    def _order(self, epoch):
        order = numpy.arange(len(self.X))
        if self.shuffle:
            # This generator's stream is frozen: stored outputs stay true.
            order = numpy.random.RandomState([self.seed, epoch]).permutation(order)
        return order[self.part_index :: self.num_parts]

    def _minibatches(self, order):
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            X = np.array(self.X[rows], dtype="float32", ctx=mx.cpu(0))
            yield X, np.array(self.y[rows], dtype="int32", ctx=mx.cpu(0))


def minibatches(batches):
    """Yield this worker's `(X, y, n)` of an epoch, equally often on all workers.

    `batches`: a `Batches` of this worker's part. `n`: the examples in the k-th
    minibatches of *all* workers, by which the sum of their gradients is divided.
    Parts may differ by one example, so a worker can run out of minibatches one
    step before another. It then gets `X` and `y` without examples, and pushes
    zeros: a synchronous store waits for every worker.

    Developed in the chapter *In step*.
    """
    num_examples, k = len(batches.X), batches.num_parts
    mine = iter(batches)
    for start in range(0, num_examples, k * batches.batch_size):
        X, y = next(mine, (batches.X[:0], batches.y[:0]))
        yield X, y, min(k * batches.batch_size, num_examples - start)
