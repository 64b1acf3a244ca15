"""Decoder layers divided over devices: by head, by hidden unit, or by token.

A head is independent of the others. It has its own columns in the weights of queries,
keys and values, and its own rows in the output's weights. So attention is cut like a
dense block: first by columns, then by rows, at the borders of heads. Each part is a
summand of every output.

The two ends are cut by token: at the start a device holds the rows of some tokens, at
the end it computes the scores of some tokens. The softmax needs two numbers from each
device per position, and no scores.

Devices that share a layer use two collectives; each is the other's backward pass:

    reduce-scatter   every device has a summand of all rows  →  the sum of some rows
    allgather        every device has some rows              →  all rows
    allreduce        the first, and then the second

Both go around the ring of `data_parallel.allreduce`, whose chunks are rows here.
"""

from collections import namedtuple
from functools import lru_cache
from itertools import accumulate

import numpy
from mxnet import nd, np, npx

from ..data_parallel import allreduce as ring
from ..data_parallel.traffic import cuts
from .dense import replicate, row_split


def attention(h, qkv, out, batch, heads):
    """Return the summand of attention's output from these heads: (n, width).

    `h` (n, width): n = T · `batch` rows, position by position. `qkv`
    (3 · heads · d, width): for each head its queries, keys and values. `out`
    (width, heads · d). `heads`: their number here. Position t attends to 0 to t.

    Source: Vaswani et al., "Attention Is All You Need" (2017). Developed in the chapter
    *A Transformer over its heads*.
    """
    x = linear(h, qkv).reshape(-1, batch, qkv.shape[0])  # (T, batch, 3 · heads · d)
    mixed = (fused if numpy.dtype(h.dtype) == "float32" else plain)(x, heads)
    return linear(mixed.reshape(h.shape[0], -1), out)


def plain(x, heads):
    """Return the values that each head attends to, for all positions: (T, batch, heads
    · d).

    `x` (T, batch, 3 · heads · d): queries, keys and values, head after head.
    """
    T, batch, size = x.shape
    d = size // (3 * heads)
    x = np.transpose(x.reshape(T, batch * heads, 3, d), (2, 1, 0, 3))
    queries, keys, values = x[0], x[1], x[2]  # (batch · heads, T, d)
    scores = npx.batch_dot(queries, keys, transpose_b=True) * d**-0.5
    mixed = npx.batch_dot(causal_softmax(scores), values)
    return np.transpose(mixed, (1, 0, 2)).reshape(T, batch, heads * d)


def fused(x, heads):
    """Compute `plain` by two operators of MXNet that copy less; CPUs: only float32."""
    x = x.as_nd_ndarray()
    scores = nd.contrib.interleaved_matmul_selfatt_qk(x, heads=heads).as_np_ndarray()
    shares = causal_softmax(scores).as_nd_ndarray()
    mixed = nd.contrib.interleaved_matmul_selfatt_valatt(x, shares, heads=heads)
    return mixed.as_np_ndarray()


def causal_softmax(scores):
    """Return the softmax of `scores` (…, T, T) over keys: 0 where the key is later."""
    mask = later(scores.shape, scores.dtype, scores.ctx).detach()  # new per graph
    return npx.softmax(scores + mask, axis=-1)


@lru_cache(maxsize=8)
def later(shape, dtype, device):
    """Return the summand that masks scores of `shape` (…, T, T): -1e9 where the key is
    later.

    It has the whole shape, because MXNet's backward pass through a broadcast sum takes
    ten times as long on CPUs. One is cached per shape and device.
    """
    mask = numpy.triu(numpy.full(shape[-2:], -1e9), 1)
    return np.array(numpy.broadcast_to(mask, shape), dtype=dtype, ctx=device)


def mlp(h, up, down):
    """Return the MLP half of a block, (n, width): weights `up` (hidden, width) and
    `down`.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016).
    """
    return linear(npx.leaky_relu(linear(h, up), act_type="gelu"), down)


def linear(x, W):
    """Return `x` (n, in) times transposed `W` (out, in), by oneDNN: np.dot is slow."""
    return npx.fully_connected(x, W, num_hidden=W.shape[0], no_bias=True)


def embed(tokens, table, first):
    """Return the rows of `tokens` in this part of the table; zeros for other tokens.

    `tokens` (n,), whole numbers. `table` (vocabᵢ, width): the rows from `first` on. The
    sum over the devices is the embedding (n, width). Source: Shoeybi et al.,
    "Megatron-LM" (2019). Developed in the chapter *A Transformer over its heads*.
    """
    size, width = table.shape
    own = tokens - first
    here = ((own >= 0) * (own < size)).astype(table.dtype)
    rows = npx.embedding(np.clip(own, 0, size - 1), table, input_dim=size,
                         output_dim=width, dtype=table.dtype)
    return rows * np.expand_dims(here, 1)


def cross_entropy(scores, targets, firsts, count=None):
    """Return the loss of each position and the gradient of the scores, over shards.

    `scores`: (n, vocabᵢ) on device i, of the tokens from `firsts[i]` on. `targets`:
    (n,) on each device. `count`: the divisor of the summed loss, default n.

    Each device gives the logarithm of its summed exponentials and its targets' scores,
    2n numbers, whatever the size of the vocabulary; over the ring of k devices it sends
    2n(k − 1). Returns (losses (n,), gradients), a list each.
    """
    marks = [
        npx.one_hot(target - first, z.shape[1], dtype=z.dtype)  # or zeros
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
    """Return log Σ exp z along an axis, without overflow."""
    most = z.max(axis, keepdims=True)
    return np.log(np.exp(z - most).sum(axis)) + np.squeeze(most, axis)


# ---- The two collectives ----


def reduce_scatter(Xs):
    """Reduce-scatter: device i gets the sum of the i-th share of the rows.

    `Xs`: an array (n, …) per device, all of one shape. Returns arrays (nᵢ, …), whose
    numbers of rows differ by at most one. Device i sends (k − 1)/k of its array, when k
    divides n. Developed in the chapter *A Transformer over its heads*.
    """
    edges = cuts(Xs[0].shape[0], len(Xs))
    return ring.reduce_scatter([_chunks(X, edges) for X in Xs])


def allgather(parts):
    """Allgather: every device gets all rows, device 0's first: (nᵢ, …) → (n, …)."""
    if len(parts) == 1:
        return parts
    edges = [*accumulate((part.shape[0] for part in parts), initial=0)]
    shape = (edges[-1], *parts[0].shape[1:])
    wholes = [np.empty(shape, dtype=part.dtype, ctx=part.ctx) for part in parts]
    ring.allgather(parts, [_chunks(whole, edges) for whole in wholes])
    return wholes


def _chunks(X, edges):
    """Return the shares of the rows: share i is what the ring leaves, chunk i + 1."""
    shares = [X[a:b] for a, b in zip(edges, edges[1:])]
    return shares[-1:] + shares[:-1]


def allreduce(Xs):
    """Return the sum of `Xs` (n, …) for every device: 2(k − 1)/k of an array sent."""
    return allgather(reduce_scatter(Xs))


def same(Xs):
    """Return `Xs`, and send nothing: every device already has its array."""
    return Xs


#: How values enter and leave a divided layer. `spread`: turns the values between two
#: layers into a layer's whole input on each device. `collect`: turns a layer's outputs,
#: summands, into the values between. Backward, `collect` replaces `spread`, and the
#: other way around. `place`: what each device of a list holds, between layers, of an
#: array (n, …) of the host.
Way = namedtuple("Way", "spread collect place")
#: All rows on every device, also between the layers.
TENSOR = Way(same, allreduce, replicate)
#: Between the layers, a share of the rows on each device.
SEQUENCE = Way(allgather, reduce_scatter, row_split)
