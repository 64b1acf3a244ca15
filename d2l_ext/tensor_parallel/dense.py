"""Layerwise (tensor) splitting: every device holds a slice of each layer's weights.

A block is dense, ReLU, dense, with the parameters `[W1, b1, W2, b2]`. The first
layer is cut by columns and the second by rows, so a slice of the hidden values never
leaves its device. Only two sums over the slices are sent, one forward, one backward.
"""

import numpy
from mxnet import nd, np, npx

from ..data_parallel.allreduce import allreduce
from ..data_parallel.traffic import spans


def column_split(W, devices):
    """Cut `W` along its last axis: part i, on `devices[i]`, computes some outputs.

    `W`: weights (in, out) or a bias (out,), NumPy or `mxnet.np`, of any dtype. Returns
    one `mxnet.np` array per device, (in, outᵢ) or (outᵢ,), whose widths differ by at
    most one. A device receives only its part. Raises `ValueError` for more devices than
    columns. Source: Shoeybi et al., "Megatron-LM" (2019). Developed in the chapter
    *Tensor parallelism*.
    """
    parts = shares("columns", W.shape[-1], devices)
    return [_put(W[..., a:b], device) for (a, b), device in zip(parts, devices)]


def row_split(W, devices):
    """Cut `W` (in, out) along its first axis: part i (inᵢ, out) reads some inputs.

    Each part computes a summand of *every* output. Raises `ValueError` for more devices
    than rows.
    """
    parts = shares("rows", W.shape[0], devices)
    return [_put(W[a:b], device) for (a, b), device in zip(parts, devices)]


def replicate(x, devices):
    """Return a copy of `x` (NumPy or `mxnet.np`) on each device."""
    return [_put(x, device) for device in devices]


def split_block(params, devices):
    """Divide a block over k devices: `parts[i]` is `[W1ᵢ, b1ᵢ, W2ᵢ, b2]`.

    `params`: `[W1 (in, hidden), b1 (hidden,), W2 (hidden, out), b2 (out,)]`, on the
    host if no device can hold them. `W1` and `b1` are cut by columns, `W2` by rows;
    every device holds all of `b2`, which is added once, to the sum. Raises `ValueError`
    for other shapes, and for more devices than hidden values.
    """
    W1, b1, W2, b2 = params
    shapes = [W1.shape, b1.shape, W2.shape, b2.shape]
    hidden_fits = W1.shape[1:] == b1.shape == W2.shape[:1]
    if not hidden_fits or W2.shape[1:] != b2.shape:
        raise ValueError(
            f"W1, b1, W2, b2 have shapes {shapes}: they must be (in, hidden), "
            "(hidden,), (hidden, out) and (out,)"
        )
    shares("hidden values", W1.shape[1], devices)
    b2s = replicate(b2, devices)
    split = column_split(W1, devices), column_split(b1, devices), row_split(W2, devices)
    return [list(part) for part in zip(*split, b2s)]


def join_block(parts):
    """Join the slices of a block, or of its gradients: four NumPy arrays."""
    W1s, b1s, W2s, b2s = ([x.asnumpy() for x in column] for column in zip(*parts))
    join = numpy.concatenate
    return [join(W1s, axis=1), join(b1s), join(W2s, axis=0), b2s[0]]


def bytes_per_device(params, k):
    """Return the bytes of a block's parameters on each of k devices: a list."""
    W1, _, _, b2 = params
    per_hidden = W1.shape[0] + 1 + b2.shape[0]  # a column, its bias, a row
    itemsize = numpy.dtype(W1.dtype).itemsize
    parts = spans(W1.shape[1], k)
    return [((b - a) * per_hidden + b2.shape[0]) * itemsize for a, b in parts]


def forward(Xs, parts, reduce=allreduce):
    """Return the block's output on every device. One allreduce, of n × out numbers.

    `Xs`: the whole input (n, in) on every device. `parts`: from `split_block`.
    `reduce`: an allreduce, default the naive one. Returns `(Ys, hidden)`: the output
    (n, out), the same on all devices, and each device's hidden values for `backward`.
    """
    hidden = [
        npx.relu(np.dot(X, W1) + b1) for X, (W1, b1, _, _) in zip(Xs, parts)
    ]  # (n, hidden/k): these hidden values are complete, so ReLU can be applied
    Ys = [np.dot(H, W2) for H, (_, _, W2, _) in zip(hidden, parts)]  # (n, out)
    reduce(Ys)  # the summands of every output are summed
    return [Y + b2 for Y, (_, _, _, b2) in zip(Ys, parts)], hidden


def backward(dYs, Xs, hidden, parts, reduce=allreduce):
    """Return the block's gradients. One allreduce, of n × in numbers.

    `dYs`: the loss's gradient with respect to the output (n, out), the same on every
    device.
    `Xs`, `hidden`, `parts`, `reduce`: as in `forward`.

    Returns `(dXs, gradients)`. `dXs`: of the input (n, in), the same on all devices.
    `gradients[i]`: of the slices on device i, in the order of `parts[i]`. None of them
    is sent; the one of `b2` is the same on every device.
    """
    dXs, gradients = [], []
    for dY, X, H, (W1, _, W2, _) in zip(dYs, Xs, hidden, parts):
        dH = _dot(dY, W2, transpose_b=True) * (H > 0)  # (n, hidden/k)
        dW1, dW2 = _dot(X, dH, transpose_a=True), _dot(H, dY, transpose_a=True)
        gradients.append([dW1, dH.sum(axis=0), dW2, dY.sum(axis=0)])
        dXs.append(_dot(dH, W1, transpose_b=True))  # (n, in), from these hidden values
    reduce(dXs)
    return dXs, gradients


def _dot(a, b, **transposed):
    """Return a product with a transposed factor, without storing the transpose."""
    arrays = a.as_nd_ndarray(), b.as_nd_ndarray()
    return nd.dot(*arrays, **transposed).as_np_ndarray()


def _put(part, device):
    return np.array(part, dtype=part.dtype, ctx=device)


def shares(what, size, devices):
    """Divide `size` items, `what`, into one (start, stop) per device, none empty.

    Raises `ValueError` for more devices than items, and for no devices.
    """
    if not 1 <= len(devices) <= size:
        raise ValueError(
            f"{size} {what} cannot be split over {len(devices)} devices: "
            f"use 1 to {size}"
        )
    return spans(size, len(devices))
