"""Large batches: fewer but larger updates, scaled layer by layer.

With k times the batch there are k times fewer updates per epoch. To make up for it:

    linear scaling   k times the rate, as k small steps add up to a large one
    warm-up          a lower rate at first, while a single step changes the gradient
    LARS, LAMB       steps of a fixed share of a layer's length, in the direction of
                     SGD or of Adam

Each replica holds whole layers and their whole gradients, so computing the lengths
needs no message.
"""

from math import isfinite

from mxnet import np

from ..checks import known_name, whole_number
from . import flat, lenet
from .allreduce import allreduce
from .minibatch import split_batch
from .step import forward_backward

BETA2, EPSILON = 0.999, 1e-6  # of Adam and LAMB


class SGD:
    """SGD with momentum: v ← β·v + g + decay·w is the direction of the step."""

    def __init__(self, replica, momentum, decay):
        self.replica, self.momentum, self.decay = replica, momentum, decay
        self.velocity = np.zeros_like(replica.values)

    def direction(self, g):
        """Take in the mean gradient `g`; return the step to subtract at a rate of 1."""
        u = self.scaled(g + self.decay * self.replica.values, g)
        self.velocity[:] = self.momentum * self.velocity + u
        return self.velocity

    def scaled(self, u, g):
        """Return `u`; LARS scales it."""
        return u


class LARS(SGD):
    """SGD whose gradients are scaled by `trust`, layer by layer.

    Source: You, Gitman and Ginsburg (2017), whose η is part of the rate here.
    """

    def scaled(self, u, g):
        return by_layer(self.replica.params, u, g, self.decay)


class Adam:
    """Adam, bias-corrected, with decoupled decay; `momentum` is β₁."""

    def __init__(self, replica, momentum, decay):
        self.replica, self.momentum, self.decay = replica, momentum, decay
        self.mean, self.squares = (np.zeros_like(replica.values) for _ in range(2))
        self.t = 0

    def direction(self, g):
        """Take in the mean gradient `g`; return the step to subtract at a rate of 1."""
        self.t += 1
        self.mean[:] = self.momentum * self.mean + (1 - self.momentum) * g
        self.squares[:] = BETA2 * self.squares + (1 - BETA2) * g * g
        mean = self.mean / (1 - self.momentum**self.t)
        root = np.sqrt(self.squares / (1 - BETA2**self.t)) + EPSILON
        return self.scaled(mean / root + self.decay * self.replica.values)

    def scaled(self, u):
        """Return `u`; LAMB scales it."""
        return u


class LAMB(Adam):
    """Adam whose steps are scaled by `trust`, layer by layer.

    Source: You et al. (2020).
    """

    def scaled(self, u):
        return by_layer(self.replica.params, u, u)


RULES = {"sgd": SGD, "lars": LARS, "adam": Adam, "lamb": LAMB}


class Replica(flat.FlatReplica):
    """The list `params`, copied to `device`, with an optimizer.

    `rule`: a name in `RULES`, or such a class. `momentum`: also Adam's β₁, default 0.9.
    `decay`: of the weights, default 0. Raises `ValueError` for an unknown rule or a
    number out of range. Developed in the chapter *Large batches*.
    """

    def __init__(self, params, device, rule, momentum=0.9, decay=0.0):
        if isinstance(rule, str):
            known_name("rule", rule, RULES)
            rule = RULES[rule]
        if not (0 <= momentum < 1 and 0 <= decay < 1):
            raise ValueError(f"{momentum=}, {decay=}: each must be at least 0 and "
                             "less than 1")
        super().__init__(**vars(flat.get_flat_params(params, device)))
        self.optimizer = rule(self, momentum, decay)

    def update(self, lr, n):
        """Take a step at rate `lr`; the gradients are sums over `n` examples."""
        self.values -= lr * self.optimizer.direction(self.gradients / n)


def by_layer(params, u, v, decay=0.0):
    """Scale each layer's part of `u` in place by `trust`, given its part of `v`.

    `params`: the weights. Biases, arrays with one axis, are not scaled. Returns `u`.
    """
    parts = [flat.views_of(x, [p.shape for p in params]) for x in (u, v)]
    for w, part, other in zip(params, *parts):
        if len(w.shape) > 1:
            part *= trust(w, other, decay)
    return u


def _squared(x):
    return (x * x).sum()


def trust(w, v, decay=0.0):
    """Return ‖w‖ / (‖v‖ + decay·‖w‖), or 1 if w or v is zero. Never waits."""
    w, v = np.sqrt(_squared(w)), np.sqrt(_squared(v))
    return np.where(w * v > 0, w / (v + decay * w), np.ones_like(w))


def train_batch(X, y, replicas, devices, lr, net=lenet.lenet):
    """Take a data-parallel step of the `Replica`s, one on each of `devices`, at rate
    `lr`.

    `net(X, params)`: the scores, default LeNet. Returns squared lengths of mean
    gradients: a list of the devices' own, and the minibatch's. Developed in the chapter
    *Large batches*.
    """
    X_shards, y_shards = split_batch(X, y, devices)
    forward_backward(X_shards, y_shards, [r.params for r in replicas], net)
    own = [_squared(r.gradients / len(part)) for r, part in zip(replicas, y_shards)]
    allreduce([r.gradients for r in replicas])
    for r in replicas:
        r.update(lr, len(y))
    return own, _squared(replicas[0].gradients / len(y))


def warmed_up(rate, step, steps, last=None):
    """Return the rate of step number `step`, from 0: it grows linearly to `rate` in
    `steps`.

    With `last`, the number of all steps, it then falls linearly to 0 after the last.
    Raises `ValueError` for numbers of steps that are negative or not whole, and for a
    `last` that is not above both others.
    Source: Goyal et al. (2017). Developed in the chapter *Large batches*.
    """
    for name, value in (("step", step), ("steps", steps)):
        whole_number(name, value, least=0)
    if last is not None:
        whole_number("last", last, least=max(step, steps) + 1)
    left = 1 if last is None else (last - step) / (last - steps)
    return rate * min(1, (step + 1) / max(steps, 1), left)


def noise_and_signal(small, large, b, B):
    """Estimate tr Σ, the variance of an example's gradient, and the true ‖G‖²: a pair.

    `small`, `large`: squared lengths of gradients that are means over `b` and over `B`
    examples, averaged over steps. tr Σ / ‖G‖² is the noise scale. Raises `ValueError`
    unless 0 < b < B and both lengths are finite. Source: McCandlish, Kaplan and Amodei
    (2018), A.1. Developed in the chapter *Large batches*.
    """
    if not 0 < b < B:
        raise ValueError(f"batches of {b} and {B} examples: the first must be smaller, "
                         "as on two or more devices")
    if not (isfinite(small) and isfinite(large)):
        raise ValueError(f"squared lengths {small}, {large} are not both finite: use a "
                         "lower learning rate")
    noise = (small - large) / (1 / b - 1 / B)
    return noise, small - noise / b
