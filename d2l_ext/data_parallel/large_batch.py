"""Large batches: fewer updates, which must go farther, but not in every layer alike.

With k times the batch there are k times fewer updates in an epoch. In their place:

    linear scaling   k times the rate, as k small steps add up to a large one
    warm-up          at first less, while one step is enough to change the gradient
    LARS, LAMB       a share of a layer's length, of SGD's direction and of Adam's

Lengths are those of whole arrays. Replicas hold whole arrays and the same sum of
gradients, so each device finds the same lengths, and nothing more is sent.
"""

from math import isfinite

from mxnet import np

from ..checks import known_name, whole_number
from . import flat, lenet
from .allreduce import allreduce
from .minibatch import split_batch
from .step import forward_backward

RULES = ("sgd", "lars", "adam", "lamb")


class Replica(flat.FlatReplica):
    """The list `params`, copied to `device`, with what one of `RULES` keeps for them.

    `momentum`: of the gradients, Adam's β₁, default 0.9. `decay`: weight decay, default
    0. `beta2`, `epsilon`: Adam's. Arrays with one axis, biases, are not scaled.
    Raises `ValueError` for an unknown rule, or a number out of range. Sources: You,
    Gitman and Ginsburg (2017), whose η is a factor of the rate here; You et al. (2020).
    Developed in the chapter *Large batches*.
    """

    def __init__(self, params, device, rule, momentum=0.9, decay=0.0, beta2=0.999,
                 epsilon=1e-6):  # fmt: skip
        known_name("rule", rule, RULES)
        if not all(0 <= x < 1 for x in (momentum, decay, beta2)):
            raise ValueError(f"momentum={momentum!r}, decay={decay!r}, beta2={beta2!r}:"
                             " each is a number from 0, less than 1")  # fmt: skip
        super().__init__(**vars(flat.get_flat_params(params, device)))
        self.rule, self.momentum, self.decay = rule, momentum, decay
        self.beta2, self.epsilon, self.t = beta2, epsilon, 0
        self.mean, self.squares = (np.zeros_like(self.values) for _ in range(2))

    def update(self, lr, n):
        """A step of rate `lr` along the gradients, which are sums over `n` examples."""
        self.t += 1
        g, b1, b2 = self.gradients / n, self.momentum, self.beta2
        if self.rule in ("sgd", "lars"):
            u = g + self.decay * self.values
            if self.rule == "lars":
                self._scale(u, g, self.decay)
            self.mean[:] = u = b1 * self.mean + u
        else:
            self.mean[:] = b1 * self.mean + (1 - b1) * g
            self.squares[:] = b2 * self.squares + (1 - b2) * g * g
            root = np.sqrt(self.squares / (1 - b2**self.t)) + self.epsilon
            u = self.mean / (1 - b1**self.t) / root + self.decay * self.values
            if self.rule == "lamb":
                self._scale(u, u)
        self.values -= lr * u

    def _scale(self, u, v, decay=0.0):
        """Scale each layer's part of `u` by the `trust` in the same part of `v`."""
        parts = [flat.views_of(x, [p.shape for p in self.params]) for x in (u, v)]
        for w, part, other in zip(self.params, *parts):
            if len(w.shape) > 1:
                part *= trust(w, other, decay)


def _squared(x):
    return (x * x).sum()


def trust(w, v, decay=0.0):
    """‖w‖ / (‖v‖ + decay·‖w‖), or 1 where w or v is zero. Waits for nothing."""
    w, v = np.sqrt(_squared(w)), np.sqrt(_squared(v))
    return np.where(w * v > 0, w / (v + decay * w), np.ones_like(w))


def train_batch(X, y, replicas, devices, lr, net=lenet.lenet):
    """A data-parallel step of the `Replica`s, one on each of `devices`, at rate `lr`.

    `net(X, params)`: the scores, default LeNet. Returns the squared lengths of mean
    gradients: a list of the devices' own, and the whole minibatch's; for
    `noise_and_signal`. Nothing waits. Developed in the chapter *Large batches*.
    """
    X_shards, y_shards = split_batch(X, y, devices)
    forward_backward(X_shards, y_shards, [r.params for r in replicas], net)
    own = [_squared(r.gradients / len(part)) for r, part in zip(replicas, y_shards)]
    allreduce([r.gradients for r in replicas])
    for r in replicas:
        r.update(lr, len(y))
    return own, _squared(replicas[0].gradients / len(y))


def warmed_up(rate, step, steps):
    """The rate of step number `step`, from 0: it grows evenly to `rate` in `steps`.

    Source: Goyal et al. (2017). Developed in the chapter *Large batches*.
    """
    whole_number("step", step, least=0)
    whole_number("steps", steps, least=0)
    return rate * min(1, (step + 1) / max(steps, 1))


def noise_and_signal(small, large, b, B):
    """tr Σ, the variance of an example's gradient, and ‖G‖², the true gradient's.

    `small`, `large`: squared lengths of gradients that are means over `b` and over `B`
    examples; averages over many steps, as a single step tells little. tr Σ / ‖G‖², the
    noise scale, estimates the critical batch size. Raises `ValueError` unless b < B and
    both lengths are finite. Source: McCandlish, Kaplan and Amodei (2018), appendix A.1.
    Developed in the chapter *Large batches*.
    """
    if not 0 < b < B:
        raise ValueError(f"batches of {b} and of {B} examples: a smaller and a larger "
                         "one are needed, so two devices at least")  # fmt: skip
    if not (isfinite(small) and isfinite(large)):
        raise ValueError(f"squared lengths {small} and {large}: take a lower rate")
    noise = (small - large) / (1 / b - 1 / B)
    return noise, small - noise / b
