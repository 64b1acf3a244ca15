"""The best rate of a large batch, and its number of steps: stored for its chapter.

    make result NAME=large_batches-small

and `-falling`, `-large`, `-rescaled` and `-steps`.
"""

import d2l_ext  # noqa: F401, I001  first: it prepares MXNet's engine

import math
from statistics import median

import numpy
from mxnet import np, npx

from d2l_ext.data import sets
from d2l_ext.data.sets import Batches
from d2l_ext.data_parallel import large_batch, lenet
from d2l_ext.devices import try_all_devices

WIDTHS, EPOCHS, SEEDS, SMALL, LARGE = (784, 128, 128, 10), 8, 3, 16, 256
#: The loss on held-out digits that ends a run, and its examples at most.
TARGET, ENOUGH = 0.3, 24 * 1536


def dense(X, params):
    """Compute three dense layers with relu between them."""
    h = X.reshape(len(X), -1)
    for W, b in zip(params[:-2:2], params[1:-2:2]):
        h = npx.relu(np.dot(h, W) + b)
    return np.dot(h, params[-2]) + params[-1]


def init_params(seed, scale=1.0):
    """Return He's initial weights, the first layer's over `scale`; zero biases."""
    rng, params = numpy.random.RandomState(seed), []
    for m, n in zip(WIDTHS, WIDTHS[1:]):
        W = rng.randn(m, n) * (2 / m) ** 0.5 / (scale if not params else 1)
        params += [np.array(W, dtype="float32"), np.zeros(n)]
    return params


def rates(first, number=6):
    return [first * 2**i for i in range(number)]


def small():
    """Return the accuracies of a small batch, at six rates."""
    return rows([("sgd", 0, False, rate) for rate in rates(0.003125)], SMALL)


def small_falling():
    """Return the accuracies of a small batch, at six rates that fall."""
    return rows([("sgd", 0, True, rate) for rate in rates(0.003125)], SMALL)


def large():
    """Return the accuracies of a large batch, by rule, warm-up, decay and rate."""
    return rows(each(0.025), LARGE)


def rescaled():
    """Return the same for an equal function: pixels times 16, first weights over 16."""
    return rows(each(0.0004), LARGE, scale=16.0)


def each(sgd):
    """Return six rates for each rule, each share of the steps for warm-up, and each
    decay.

    `sgd`: SGD's lowest rate. That of LARS and LAMB is the same for both networks.
    """
    ways = [("sgd", 0, False)] + [(rule, 0.2, falls) for rule in large_batch.RULES
                                  if rule != "adam" for falls in (False, True)]
    return [(*way, rate) for way in ways
            for rate in rates(sgd if way[0] == "sgd" else 0.003125)]


def rows(settings, batch, scale=1.0):
    """Return the accuracy after `EPOCHS`, on held-out digits, by setting and seed."""
    npx.set_np()
    data = sets.load_arrays("digits")
    return [
        {"rule": rule, "warm": share, "falls": falls, "rate": rate,
         "accuracy": [accuracy(data, rule, (share, falls), rate, batch, seed, scale)
                      for seed in range(SEEDS)]}
        for rule, share, falls, rate in settings
    ]


def accuracy(data, rule, way, rate, batch, seed, scale):
    batches = Batches(data.train_X * scale, data.train_y, batch, True, seed)
    most = EPOCHS * len(batches)
    warm, last = round(way[0] * most), most if way[1] else None
    devices = try_all_devices(1)
    replicas = [large_batch.Replica(init_params(seed, scale), *devices, rule)]
    pairs = ((X, y) for _ in range(EPOCHS) for X, y in batches)
    for step, (X, y) in enumerate(pairs):
        lr = large_batch.warmed_up(rate, step, warm, last)
        large_batch.train_batch(X, y, replicas, devices, lr, dense)
    out = dense(np.array(data.test_X * scale), replicas[0].params)
    return float((out.asnumpy().argmax(1) == data.test_y).mean())


def steps():
    """Return, for each size of a batch, the steps to `TARGET` at each rate, median of
    seeds.

    The loss is looked at every 64 examples, and in every step of larger batches. None
    if most seeds have not reached it after `ENOUGH` examples, or after 200 steps if
    that is less.
    """
    npx.set_np()
    data = sets.load_arrays("digits")
    found = []
    for batch in (8, 16, 32, 64, 128, 256, 512):
        first = min(0.0025 * batch / 8, 0.02)
        taken = {rate: median(steps_to(data, batch, rate, seed)
                              for seed in range(SEEDS))
                 for rate in rates(first, 4)}
        found.append({"batch": batch, "steps": [
            {"rate": rate, "steps": None if math.isinf(n) else n}
            for rate, n in taken.items()]})
    return found


def steps_to(data, batch, rate, seed):
    batches = Batches(data.train_X, data.train_y, batch, True, seed)
    devices, every = try_all_devices(1), max(1, 64 // batch)
    replicas = [large_batch.Replica(init_params(seed), *devices, "sgd")]
    test_X, test_y = np.array(data.test_X), np.array(data.test_y)
    most = min(ENOUGH // batch, 200)
    pairs = ((X, y) for _ in range(ENOUGH) for X, y in batches)
    for step, (X, y) in zip(range(1, most + 1), pairs):
        large_batch.train_batch(X, y, replicas, devices, rate, dense)
        if step % every == 0:
            out = dense(test_X, replicas[0].params)
            if float(lenet.loss(out, test_y).mean()) < TARGET:
                return step
    return math.inf
