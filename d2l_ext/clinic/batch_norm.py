"""Batch normalization over a minibatch that is divided among devices.

Each device has its own rows. Normalizing them by their own mean and variance does
not give the result of one device with the whole minibatch. So the devices exchange, per
channel:

    forward     number of rows, mean, sum of squared deviations      2·C + 1 numbers
    backward    sum of dY, sum of dY times the normalized input      2·C numbers

Means of unequal shards are weighted, and the deviations of their means are added to the
sum of squared deviations (Chan, Golub and LeVeque): no square of a large mean is
subtracted from another, so float32 is enough.
"""

from dataclasses import dataclass

from mxnet import np

from ..data_parallel.allreduce import allreduce
from ..data_parallel.traffic import send


@dataclass
class Kept:
    """Values of forward that backward needs: lists with one entry per device."""

    normalized: list  # the normalized inputs, of the shape of X
    scale: list  # gamma / sqrt(var + eps), shape (C,)
    rows: list  # numbers per channel of all devices together, shape (1,)


def sync_batch_norm(Xs, gammas, betas, running=None, momentum=0.9, eps=1e-5):
    """Normalize by the statistics of all devices; return `(Ys, kept)`.

        Ys, kept = sync_batch_norm(Xs, gammas, betas, running)
        dXs, dgammas, dbetas = backward(dYs, kept)

    `Xs`: inputs (nᵢ, C) or (nᵢ, C, …), one per device, float32 or float64; nᵢ may
    differ.
    `gammas`, `betas`: scale and offset (C,), the same on every device.
    `running`: None, or `(means, variances)`, two lists with an array (C,) per device,
    changed in place: `momentum` of the old value, 1 − `momentum` of the minibatch's,
    with the variance divided by n, as in `npx.batch_norm`. `eps` is added to the
    variance. Does not wait. All devices get the same statistics, bit for bit.

    Raises `ValueError` for lists of different lengths, or inputs whose channels differ.
    Source: Ioffe and Szegedy (2015), Algorithm 1, over all shards. Developed in the
    chapter *Wrong without an error*.
    """
    _check(Xs, gammas, betas)
    Ys, kept = [], Kept([], [], [])
    for i, (mean, var, rows) in enumerate(combined([moments(X) for X in Xs])):
        inverse = 1 / np.sqrt(var + eps)  # (C,)
        normalized = (Xs[i] - _wide(mean, Xs[i])) * _wide(inverse, Xs[i])
        Ys.append(normalized * _wide(gammas[i], Xs[i]) + _wide(betas[i], Xs[i]))
        kept.normalized.append(normalized)
        kept.scale.append(gammas[i] * inverse)
        kept.rows.append(rows)
        for old, new in zip(running or (), (mean, var)):
            old[i][:] = momentum * old[i] + (1 - momentum) * new
    return Ys, kept


def backward(dYs, kept, reduce=allreduce):
    """Return the gradients `(dXs, dgammas, dbetas)` of `sync_batch_norm`.

    `dYs`: the gradients with respect to its outputs. `kept`: from `sync_batch_norm`.
    The gradients of gamma and beta are sums over all devices, the same on each.
    `reduce`: an allreduce.
    """
    sums = []
    for dY, normalized in zip(dYs, kept.normalized):
        axes = _others(dY)
        sums.append(np.stack([dY.sum(axis=axes), (dY * normalized).sum(axis=axes)]))
    reduce(sums)  # (2, C): the gradients of beta and of gamma
    dXs = []
    for dY, normalized, scale, rows, both in zip(
        dYs, kept.normalized, kept.scale, kept.rows, sums
    ):
        along = [_wide(row / rows.astype(row.dtype), dY) for row in both]
        dXs.append(_wide(scale, dY) * (dY - along[0] - normalized * along[1]))
    return dXs, [both[1] for both in sums], [both[0] for both in sums]


def moments(X):
    """Return a shard's numbers per channel (1,), means and squared deviations (C,)."""
    rows = np.full(1, X.size / X.shape[1], dtype=X.dtype, ctx=X.ctx)
    mean = X.mean(axis=_others(X))
    deviations = np.square(X - _wide(mean, X)).sum(axis=_others(X))
    return rows, mean, deviations


def combined(shards):
    """Return the mean, variance and numbers of all `shards`, the same on every device.

    `shards`: the results of `moments`, one per device. Each device sends its three
    arrays to all others, which add them in the same order.
    """
    found = []
    for here in shards:
        there = [[x if x.ctx == here[0].ctx else send(x, here[0].ctx) for x in shard]
                 for shard in shards]
        total = sum(rows for rows, _, _ in there)
        mean = sum(rows * mean for rows, mean, _ in there) / total
        squares = sum(deviations + rows * np.square(own - mean)
                      for rows, own, deviations in there)
        found.append((mean, squares / total, total))
    return found


def _others(X):
    """Return all axes but that of the channels."""
    return (0, *range(2, X.ndim))


def _wide(x, like):
    """Return `x` (C,) in a shape that can be added to `like` (n, C, …)."""
    return x.reshape(1, -1, *[1] * (like.ndim - 2))


def _check(Xs, gammas, betas):
    lengths = len(Xs), len(gammas), len(betas)
    channels = {X.shape[1] for X in Xs} | {x.size for x in [*gammas, *betas]}
    if len({*lengths}) > 1 or len(channels) != 1:
        raise ValueError(
            f"{lengths[0]} inputs, {lengths[1]} gammas and {lengths[2]} betas with "
            f"{sorted(channels)} channels: give one of each per device, all with the "
            "same number of channels"
        )
