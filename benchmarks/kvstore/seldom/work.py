"""A small network, its data, and a step of one worker alone."""

import mxnet as mx
from d2l import mxnet as d2l
from mxnet import np, npx

from d2l_ext.data import load_arrays
from d2l_ext.data.sets import Batches
from d2l_ext.data_parallel import lenet
from d2l_ext.kvstore import dist_train

HIDDEN = 64


def init_params():
    """Return two dense layers' parameters, 784 to 64 to 10, on `cpu(0)`."""
    mx.random.seed(0)
    shapes = (784, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,)
    return [np.random.normal(scale=0.05, size=s) if len(s) > 1 else np.zeros(s)
            for s in shapes]


def net(X, params):
    """Return the scores of ten classes, (n, 10), for images of 784 pixels."""
    W1, b1, W2, b2 = params
    h = npx.relu(np.dot(X.reshape(len(X), -1), W1) + b1)  # (n, 64)
    return np.dot(h, W2) + b2


def shares(num_workers, batch_size=32, by_class=False):
    """Return the training digits' `Batches` of each worker, a list.

    `by_class`: whether each worker has digits of its own, 0 to 4 and 5 to 9 for two.
    """
    data = load_arrays("digits")
    X, y = data.train_X, data.train_y
    if not by_class:
        return [Batches(X, y, batch_size, shuffle=True, num_parts=num_workers,
                        part_index=rank) for rank in range(num_workers)]
    own = [y * num_workers // 10 == rank for rank in range(num_workers)]
    return [Batches(X[rows], y[rows], batch_size, shuffle=True) for rows in own]


def forever(batches):
    """Yield the minibatches of one epoch after the other, except those not full."""
    while True:
        for X, y in batches:
            if len(y) == batches.batch_size:
                yield X, y


def step(X, y, params, lr):
    """Take a step of this worker alone."""
    dist_train.gradients(X, y, [params], [params[0].ctx], net)
    d2l.sgd(params, lr, len(y))


def mean_loss(params, device):
    """Return the mean loss over all training digits."""
    data = load_arrays("digits")
    X, y = np.array(data.train_X, ctx=device), np.array(data.train_y, ctx=device)
    return float(lenet.loss(net(X, params), y).mean())
