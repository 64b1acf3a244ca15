"""Causal attention, of some heads or of all: a head needs nothing of another.

A head has columns of its own in the weights of queries, keys and values, and rows of
its own in the output's weights. So attention is cut as a dense block is: first by
columns, then by rows, at the borders of heads. It makes a part of every output.
"""

from functools import lru_cache

import numpy
from mxnet import nd, np, npx


def attention(h, qkv, out, batch, heads):
    """Attention's part of the output that these heads make: (n, width).

    `h` (n, width): n = T · `batch` rows, position by position. `qkv`
    (3 · heads · d, width): for each head its queries, keys and values. `out`
    (width, heads · d). `heads`: those that are here. Position t looks at 0 to t.

    Source: Vaswani et al., "Attention Is All You Need" (2017). Developed in the chapter
    *A Transformer over its heads*.
    """
    x = dense(h, qkv).reshape(-1, batch, qkv.shape[0])  # (T, batch, 3 · heads · d)
    mixed = (fused if numpy.dtype(h.dtype) == "float32" else plain)(x, heads)
    return dense(mixed.reshape(h.shape[0], -1), out)


def plain(x, heads):
    """What each head reads, of all positions: (T, batch, heads · d).

    `x` (T, batch, 3 · heads · d): queries, keys, values of a head after another.
    """
    T, batch, size = x.shape
    d = size // (3 * heads)
    x = np.transpose(x.reshape(T, batch * heads, 3, d), (2, 1, 0, 3))
    queries, keys, values = x[0], x[1], x[2]  # (batch · heads, T, d)
    scores = npx.batch_dot(queries, keys, transpose_b=True) * d**-0.5
    mask = later(scores.shape, x.dtype, x.ctx).detach()  # new to each graph
    mixed = npx.batch_dot(npx.softmax(scores + mask, axis=-1), values)
    return np.transpose(mixed, (1, 0, 2)).reshape(T, batch, heads * d)


def fused(x, heads):
    """The same by two operators of MXNet's, which copy less; float32 only on CPUs."""
    x = x.as_nd_ndarray()
    scores = nd.contrib.interleaved_matmul_selfatt_qk(x, heads=heads).as_np_ndarray()
    mask = later(scores.shape, x.dtype, x.ctx).detach()  # new to each graph
    shares = npx.softmax(scores + mask, axis=-1).as_nd_ndarray()
    mixed = nd.contrib.interleaved_matmul_selfatt_valatt(x, shares, heads=heads)
    return mixed.as_np_ndarray()


def mlp(h, up, down):
    """The other half of a block, (n, width): `up` (hidden, width) and `down`.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016).
    """
    return dense(npx.leaky_relu(dense(h, up), act_type="gelu"), down)


def dense(x, W):
    """`x` (n, in) times the transposed `W` (out, in). oneDNN's, faster than np.dot."""
    return npx.fully_connected(x, W, num_hidden=W.shape[0], no_bias=True)


@lru_cache(maxsize=8)
def later(shape, dtype, device):
    """What is added to scores of this `shape` (…, T, T): -1e9 where the key is later.

    In the whole shape: going backward through a sum that broadcasts takes MXNet's CPU
    operators ten times as long. So one is kept for each shape and device.
    """
    mask = numpy.triu(numpy.full(shape[-2:], -1e9), 1)
    return np.array(numpy.broadcast_to(mask, shape), dtype=dtype, ctx=device)
