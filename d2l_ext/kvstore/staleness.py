"""Staleness: the updates between a worker's pull and its push."""

from collections import Counter
from itertools import chain

import mxnet as mx
from mxnet import np


class Tickets:
    """A counter in the store, beside the parameters: each update draws a number.

        tickets = Tickets(kv, optimizer, key=len(params))
        kv.set_optimizer(optimizer)
        tickets.start()
        ... in every step, after its pull: tickets.take()

    `kv`: of type `dist_async`. `optimizer`: plain `SGD`, before it is sent to the
    store; its learning rate for `key` is changed so that the store adds one.
    `numbers`: the tickets that this worker drew, whole numbers from 1.
    A server handles one request after another, and a `pushpull` is one request, so
    no two workers draw the same number and none is skipped, up to 2²² updates: the
    counter is a float32.

    Raises `ValueError` for any other optimizer, momentum, weight decay, clipping, a
    learning rate of 0 or a schedule of it.
    Developed in the chapter *Out of step*.
    """

    def __init__(self, kv, optimizer, key):
        momentum = getattr(optimizer, "momentum", 0)
        if type(optimizer) is not mx.optimizer.SGD or momentum:
            raise ValueError(
                f"{type(optimizer).__name__} with momentum {momentum} cannot count "
                "updates, because its steps differ: use SGD without momentum"
            )
        if optimizer.wd:
            raise ValueError(f"weight decay {optimizer.wd} shrinks the counter: use 0")
        step = optimizer.learning_rate * optimizer.rescale_grad
        if optimizer.clip_gradient or optimizer.lr_scheduler or not step:
            raise ValueError(
                f"clip_gradient {optimizer.clip_gradient}, lr_scheduler "
                f"{optimizer.lr_scheduler}, learning rate {optimizer.learning_rate}: "
                "use a fixed learning rate other than 0, and no clipping"
            )
        optimizer.set_lr_mult({**optimizer.lr_mult, key: -1 / step})
        self.kv, self.key, self.numbers = kv, key, []

    def start(self):
        """Initialize the counter in the store; every worker must call this."""
        self.kv.init(self.key, np.zeros(1))

    def take(self):
        """Draw the next number, wait for it, and return it."""
        number = np.zeros(1)
        self.kv.pushpull(self.key, np.ones(1), out=number)
        self.numbers.append(round(float(number)))
        return self.numbers[-1]


def staleness(tickets):
    """Return the number of updates by others between a worker's pull and its next push.

    `tickets`: the numbers that each worker drew, one list per worker. Returns a list
    per worker, shorter by one: the first ticket's staleness is unknown. Other keys of
    the same step may differ by the few updates in flight at that moment.

    Raises `ValueError` when a number is missing or was drawn twice, which means that
    updates were lost.
    See also Ho et al., "More Effective Distributed ML via a Stale Synchronous
    Parallel Parameter Server", 2013, where staleness is a lead in steps.
    """
    drawn = Counter(chain.from_iterable(tickets))
    expected = range(1, sum(drawn.values()) + 1)
    wrong = [n for n in expected if drawn[n] != 1]
    if wrong:
        raise ValueError(
            f"{len(expected)} tickets must be 1 to {len(expected)}, each once; "
            f"{wrong[0]} was drawn {drawn[wrong[0]]} times"
        )
    return [[b - a - 1 for a, b in zip(own, own[1:])] for own in tickets]
