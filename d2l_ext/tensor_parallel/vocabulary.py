"""The two ends of a language model, divided over the vocabulary.

At the start a device knows the rows of some tokens, at the end it makes the scores of
some tokens. The softmax needs two numbers of each device for a position, no scores.
"""

from mxnet import np, npx

from .exchange import allgather


def embed(tokens, table, first):
    """The rows of `tokens` that this part of the table has; zeros for the others.

    `tokens` (n,), whole numbers. `table` (vocabᵢ, width): rows `first` and on. The sum
    over the devices is the embedding (n, width). Source: Shoeybi et al., "Megatron-LM"
    (2019). Developed in the chapter *A Transformer over its heads*.
    """
    size, width = table.shape
    own = tokens - first
    here = ((own >= 0) * (own < size)).astype(table.dtype)
    rows = npx.embedding(np.clip(own, 0, size - 1), table, input_dim=size,
                         output_dim=width, dtype=table.dtype)  # fmt: skip
    return rows * np.expand_dims(here, 1)


def cross_entropy(scores, targets, firsts, count=None):
    """The loss of each position, and the gradient by the scores, over shards.

    `scores`: (n, vocabᵢ) on device i, of the tokens from `firsts[i]` on. `targets`:
    (n,) on each device. `count`: what the summed loss is divided by, default n.

    Each device sends the logarithm of its summed exponentials and its target's score:
    2n numbers, whatever the vocabulary. Returns (losses (n,), gradients), a list each.
    """
    marks = [
        npx.one_hot(target - first, z.shape[1], dtype=z.dtype)  # zeros, if elsewhere
        for z, target, first in zip(scores, targets, firsts)
    ]
    mine = [
        np.expand_dims(np.stack([log_sum_exp(z, 1), (z * mark).sum(1)]), 0)
        for z, mark in zip(scores, marks)
    ]  # (1, 2, n)
    losses, gradients = [], []
    for z, mark, all_of_them in zip(scores, marks, allgather(mine)):  # (k, 2, n)
        total = log_sum_exp(all_of_them[:, 0], 0)
        losses.append(total - all_of_them[:, 1].sum(0))
        shares = np.exp(z - np.expand_dims(total, 1))
        gradients.append((shares - mark) / (count or z.shape[0]))
    return losses, gradients


def log_sum_exp(z, axis):
    """log Σ exp z along an axis, without an overflow."""
    most = z.max(axis, keepdims=True)
    return np.log(np.exp(z - most).sum(axis)) + np.squeeze(most, axis)
