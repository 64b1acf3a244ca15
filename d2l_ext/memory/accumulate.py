"""Accumulation: the gradient of a batch that does not fit, from pieces that do.

The gradients of the pieces are added up, and divided once, at the end, by the number of
all losses in the batch. Dividing in each piece by its own number gives another result
as soon as the pieces differ in length.
"""

from mxnet import autograd, np

from ..data_parallel.minibatch import split_batch


def pieces(X, y, number):
    """Cut a minibatch into `number` pieces, as even as can be: a list of (X, y).

    Raises `ValueError` when there are fewer examples than pieces, or for lengths that
    differ.
    """
    return list(zip(*split_batch(X, y, [X.ctx] * number)))


def accumulate(parts, params, loss):
    """Leave the gradient of the mean loss over all of `parts` in `params`' `grad`.

        accumulate(pieces(X, y, 4), params, lambda X, y: loss(lenet(X, params), y))

    `parts`: a list of (X, y), of any lengths. `params`: arrays; they get gradients of
    their own. `loss(X, y)`: an array of losses, as many as this piece counts, say one
    for each word. Only one piece's activations are kept at a time.

    Returns the mean loss, an array of one number. Waits for nothing. Raises
    `ValueError` when there is no loss to divide by.
    """
    grads = [np.zeros_like(p) for p in params]
    autograd.mark_variables(params, grads, "add")
    total = count = 0
    for X, y in parts:
        with autograd.record():
            values = loss(X, y)
            summed = values.sum()
        summed.backward()
        total, count = total + summed.detach(), count + values.size
    if not count:
        raise ValueError("no losses in any piece: nothing to divide by")
    for grad in grads:
        grad /= count
    autograd.mark_variables(params, grads, "write")
    return total / count
