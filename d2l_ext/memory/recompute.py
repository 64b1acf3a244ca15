"""Recomputation: forward keeps a few activations, backward computes the rest again.

Forward runs without being recorded, so that each array goes when the next layer has
used it; only the input of every segment stays. Backward takes the segments from the
last to the first: it runs a segment's forward again, recorded this time, then its
backward, and hands the gradient of the segment's input on.
"""

from math import isqrt

from mxnet import autograd
from mxnet.gluon import nn

from ..checks import whole_number


def segments(layers, every=None):
    """Cut the list `layers` into lists of `every` layers; the last may be shorter.

    Default: the root of their number, rounded up, which holds the fewest arrays: an
    input for each segment, and the outputs inside of one.
    Source: Chen et al. (2016). Developed in the chapter *Where the memory goes*.
    """
    layers = list(layers)
    whole_number("number of layers", len(layers))
    every = isqrt(len(layers) - 1) + 1 if every is None else every
    whole_number("every", every)
    return [layers[i : i + every] for i in range(0, len(layers), every)]


def backward(parts, shards, loss, before=lambda number: None):
    """Leave the gradients of the summed loss in the parameters' `grad`; the losses.

        backward(segments(net), [(X, y)], loss)

    `parts`: lists of layers, from `segments`. `shards`: an (X, y) per device. `loss`:
    a function of the last output and y. `before`: called with the number of a part
    each time before it runs; what draws random numbers needs the same seed again.

    Returns a list of the shards' summed losses, arrays of one number. The gradients
    are those of one recorded forward, bit by bit, as long as no parameter is used in
    two parts. Waits for each part but the last. Raises `ValueError` for a batch
    normalisation: its running averages would move twice in a step.

    Developed in the chapter *Where the memory goes*.
    """
    _refuse_averages(parts)
    inputs = [[X for X, _ in shards]]
    with autograd.train_mode():
        for number, layers in enumerate(parts[:-1]):
            before(number)
            inputs.append([_forward(layers, X) for X in inputs[-1]])
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
            # Forward of the next part needs nothing of this backward, and MXNet runs
            # what is ready: without a wait, all parts' forwards would come first.
            head.wait_to_read()
    return [x.detach() for x in losses]


def _forward(layers, X):
    for layer in layers:
        X = layer(X)
    return X


def _refuse_averages(parts):
    found = []
    for layer in (layer for part in parts for layer in part):
        if isinstance(layer, nn.Block):
            layer.apply(found.append)
    for block in found:
        if isinstance(block, (nn.BatchNorm, nn.BatchNormReLU)):
            raise ValueError(  # noqa: TRY004 - it is the right type, at the wrong place
                f"{block.name} is a batch normalisation, whose running averages "
                "would move twice in a step: leave recomputation off, or use LayerNorm"
            )
