"""Activations: the arrays that a step keeps per example from forward to backward.

**Accumulation** keeps the activations of one piece of the batch at a time, if the next
one begins only when the one before is done: the gradients of the pieces are summed, and
divided once, at the end, by the number of all losses. Dividing each piece by its own
number gives a different result as soon as the pieces differ in length.

**Recomputation** keeps only the input of every segment of layers: forward is not
recorded, so each array is freed when the next layer has used it. Backward takes the
segments from the last to the first: it runs a segment's forward again, recorded this
time, then its backward, and passes on the gradient of its input.
"""

from itertools import chain
from math import isqrt, prod

import numpy
from mxnet import autograd, np
from mxnet.gluon import nn

from ..checks import whole_number
from ..data_parallel.minibatch import split_batch


def nbytes(layers, X):
    """Return the bytes of each layer's output for the minibatch `X`: a list of whole
    numbers.

    `layers`: functions, one after the other, such as the blocks of a Gluon network.
    Only the first example of `X` (n, …) is computed: all others have its shapes.

    Backward needs each of these arrays once, as this layer's output or as the next
    layer's input, so they stay from forward to backward. The input of a ReLU inside a
    layer does not stay; that of `Activation`'s tanh does, and these numbers leave it
    out. Raises `ValueError` without examples.

    Developed in the chapter *Where the memory goes*.
    """
    whole_number("examples in X", len(X))
    out, sizes = X[:1], []
    for layer in layers:
        out = layer(out)
        sizes.append(len(X) * prod(out.shape[1:]) * numpy.dtype(out.dtype).itemsize)
    return sizes


def pieces(X, y, number):
    """Cut a minibatch into `number` pieces, as even as possible: a list of (X, y).

    Raises `ValueError` when there are fewer examples than pieces, for lengths that
    differ, and for a `number` below 1.
    """
    whole_number("number of pieces", number)
    if len(X) < number:
        raise ValueError(
            f"{len(X)} examples cannot be cut into {number} pieces: use 1 to {len(X)}"
        )
    return list(zip(*split_batch(X, y, [X.ctx] * number)))


def accumulate(parts, params, loss):
    """Leave the gradient of the mean loss over all of `parts` in `params`' `grad`.

        accumulate(pieces(X, y, 4), params, lambda X, y: loss(lenet(X, params), y))

    `parts`: a list of (X, y), of any lengths. `params`: arrays; this attaches their
    gradients. `loss(X, y)`: an array of losses, one per unit that the mean counts, such
    as a word.

    Returns the mean loss, an array of one number. Waits for each piece but the last, so
    devices that are given to it one after the other take turns. Raises `ValueError`
    when there is no loss to divide by.
    """
    grads = [np.zeros_like(p) for p in params]
    autograd.mark_variables(params, grads, "add")
    total = count = 0
    try:
        for X, y in parts:
            for grad in grads if count else ():
                # Without a wait, MXNet would run later forwards early: see `backward`.
                grad.wait_to_read()
            with autograd.record():
                values = loss(X, y)
                summed = values.sum()
            summed.backward()
            total, count = total + summed.detach(), count + values.size
    finally:  # also after an error, or later backward passes would add as well
        autograd.mark_variables(params, grads, "write")
    if not count:
        raise ValueError("no losses in any piece: give at least one example")
    for grad in grads:
        grad /= count
    return total / count


def segments(layers, every=None):
    """Cut the list `layers` into lists of `every` layers; the last may be shorter.

    Default: the square root of their number, rounded up, which keeps the fewest arrays
    if all layers' outputs have one size: one input per segment, and the outputs inside
    one segment. Raises `ValueError` without layers, and for an `every` below 1.
    Source: Chen et al. (2016). Developed in the chapter *Where the memory goes*.
    """
    layers = list(layers)
    whole_number("number of layers", len(layers))
    every = isqrt(len(layers) - 1) + 1 if every is None else every
    whole_number("every", every)
    return [layers[i : i + every] for i in range(0, len(layers), every)]


def backward(parts, shards, loss, before=lambda number: None):
    """Leave the summed loss's gradients in the parameters' `grad`; return the losses.

        backward(segments(net), [(X, y)], loss)

    `parts`: lists of layers, from `segments`. `shards`: an (X, y) per device. `loss`:
    a function of the last output and y. `before`: called with the number of a part
    each time before it runs; layers that draw random numbers need the same seed again.

    Returns a list of the shards' summed losses, arrays of one number. The gradients
    equal those of one recorded forward bit by bit, as long as no parameter is used in
    two parts. Waits for each part but the last. Raises `ValueError` for a batch
    normalization: cuDNN's forward moves the running averages, so they would move twice
    in a step (MXNet's own, as on a CPU, moves them in backward).

    Developed in the chapter *Where the memory goes*.
    """
    for layer in chain(*parts):
        if isinstance(layer, nn.Block):
            layer.apply(_refuse_averages)
    inputs = _inputs(parts, [X for X, _ in shards], before)
    losses = heads = None
    for number, layers in reversed([*enumerate(parts)]):
        ends = [X.detach() for X in inputs.pop()]
        for X in ends if number else ():
            X.attach_grad()
        before(number)
        with autograd.record():
            outs = [_forward(layers, X) for X in ends]
            if heads is None:
                pairs = zip(outs, shards)
                outs = losses = [loss(out, y).sum() for out, (_, y) in pairs]
        autograd.backward(outs, heads)
        heads = [X.grad for X in ends if number]
        for head in heads:
            # Forward of the next part does not depend on this backward, and MXNet runs
            # what is ready: without a wait, all parts' forwards would come first.
            head.wait_to_read()
    return [x.detach() for x in losses]


def _inputs(parts, Xs, before):
    """Return the inputs of each part, one per device, computed without recording."""
    inputs = [Xs]
    with autograd.train_mode():
        for number, layers in enumerate(parts[:-1]):
            before(number)
            inputs.append([_forward(layers, X) for X in inputs[-1]])
    return inputs


def _forward(layers, X):
    for layer in layers:
        X = layer(X)
    return X


def _refuse_averages(block):
    if isinstance(block, (nn.BatchNorm, nn.BatchNormReLU)):
        raise ValueError(  # noqa: TRY004 - it is the right type, at the wrong place
            f"{block.name} is a batch normalization, whose running averages move twice "
            "in a step where forward moves them: leave recomputation off, or use "
            "LayerNorm"
        )
