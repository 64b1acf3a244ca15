"""Large batches: fewer updates, which must go farther, but not in every layer alike.

With k times the batch there are k times fewer updates in an epoch. In their place:

    linear scaling   k times the rate, as k small steps add up to a large one
    warm-up          at first less, while one step is enough to change the gradient
    LARS, LAMB       a share of a layer's length, of SGD's direction and of Adam's

Each replica holds whole layers and their whole gradients, so lengths need no message.
"""

from math import isfinite

from mxnet import np

from ..checks import known_name, whole_number
from . import flat, lenet
from .allreduce import allreduce
from .minibatch import split_batch
from .step import forward_backward

RULES = ("sgd", "lars", "adam", "lamb")
BETA2, EPSILON = 0.999, 1e-6  # of adam and lamb


class Replica(flat.FlatReplica):
    """The list `params`, copied to `device`, with what one of `RULES` keeps for them.

    `momentum`: Adam's β₁, too, default 0.9. `decay`: of the weights, default 0. Arrays
    with one axis, biases, are not scaled. `ValueError`: an unknown rule, or a number
    out of range. Sources: You, Gitman and Ginsburg (2017), whose η is part of the rate
    here; You et al. (2020). Developed in the chapter *Large batches*.
    """

    def __init__(self, params, device, rule, momentum=0.9, decay=0.0):
        known_name("rule", rule, RULES)
        if not (0 <= momentum < 1 and 0 <= decay < 1):
            raise ValueError(f"{momentum=}, {decay=}: each is from 0 and less than 1")
        super().__init__(**vars(flat.get_flat_params(params, device)))
        self.rule, self.momentum, self.decay, self.t = rule, momentum, decay, 0
        self.mean, self.squares = (np.zeros_like(self.values) for _ in range(2))

    def update(self, lr, n):
        """The step of `FlatReplica`, by this rule."""
        self.t += 1
        g, b1, b2 = self.gradients / n, self.momentum, BETA2
        if self.rule in ("sgd", "lars"):
            u = g + self.decay * self.values
            if self.rule == "lars":
                self._scale(u, g, self.decay)
            self.mean[:] = u = b1 * self.mean + u
        else:
            self.mean[:] = b1 * self.mean + (1 - b1) * g
            self.squares[:] = b2 * self.squares + (1 - b2) * g * g
            root = np.sqrt(self.squares / (1 - b2**self.t)) + EPSILON
            u = self.mean / (1 - b1**self.t) / root + self.decay * self.values
            if self.rule == "lamb":
                self._scale(u, u)
        self.values -= lr * u

    def _scale(self, u, v, decay=0.0):
        """Scale each layer's part of `u` by the `trust` in the same part of `v`."""
        parts = [flat.views_of(x, [p.shape for p in self.params]) for x in (u, v)]
        for w, part, other in zip(self.params, *parts):
            part *= trust(w, other, decay) if len(w.shape) > 1 else 1


def _squared(x):
    return (x * x).sum()


def trust(w, v, decay=0.0):
    """‖w‖ / (‖v‖ + decay·‖w‖), or 1 where w or v is zero. Waits for nothing."""
    w, v = np.sqrt(_squared(w)), np.sqrt(_squared(v))
    return np.where(w * v > 0, w / (v + decay * w), np.ones_like(w))


def train_batch(X, y, replicas, devices, lr, net=lenet.lenet):
    """A data-parallel step of the `Replica`s, one on each of `devices`, at rate `lr`.

    `net(X, params)`: the scores, default LeNet. Returns squared gradient lengths: the
    devices' own in a list, the minibatch's. Developed in the chapter *Large batches*.
    """
    X_shards, y_shards = split_batch(X, y, devices)
    forward_backward(X_shards, y_shards, [r.params for r in replicas], net)
    own = [_squared(r.gradients / len(part)) for r, part in zip(replicas, y_shards)]
    allreduce([r.gradients for r in replicas])
    for r in replicas:
        r.update(lr, len(y))
    return own, _squared(replicas[0].gradients / len(y))


def warmed_up(rate, step, steps, last=None):
    """The rate of step number `step`, from 0: it grows evenly to `rate` in `steps`.

    With `last`, the number of all steps, it then falls evenly, to 0 behind the last.
    Source: Goyal et al. (2017). Developed in the chapter *Large batches*.
    """
    for name, value in (("step", step), ("steps", steps)):
        whole_number(name, value, least=0)
    if last is not None:
        whole_number("last", last, least=max(step, steps) + 1)
    left = 1 if last is None else (last - step) / (last - steps)
    return rate * min(1, (step + 1) / max(steps, 1), left)


def noise_and_signal(small, large, b, B):
    """tr Σ, the variance of an example's gradient, and ‖G‖², of the true gradient.

    `small`, `large`: squared lengths of gradients that are means over `b` and over `B`
    examples, averaged over steps. tr Σ / ‖G‖² is the noise scale. `ValueError` unless
    b < B and both are finite. Source: McCandlish, Kaplan and Amodei (2018), A.1.
    Developed in the chapter *Large batches*.
    """
    if not 0 < b < B:
        raise ValueError(f"batches of {b} and {B} examples: take two devices at least")
    if not (isfinite(small) and isfinite(large)):
        raise ValueError(f"squared lengths {small} and {large}: take a lower rate")
    noise = (small - large) / (1 / b - 1 / B)
    return noise, small - noise / b
