"""The functions that the program calls, in NumPy; devices compute the gradients."""

import numpy

NAMES = ("W1", "b1", "W2", "b2")
LIMIT = 0.8


def initial(seed):
    """Return the weights of 196 inputs, 16 hidden units and ten classes."""
    rng = numpy.random.RandomState(seed)
    return [rng.randn(196, 16) / 14, numpy.zeros(16), rng.randn(16, 10) / 4,
            numpy.zeros(10)]


def copied(arrays):
    return [x.copy() for x in arrays]


def summed(weights, X, y, device):
    """Return the loss summed over X's rows, and its gradients, from `device`."""
    from mxnet import autograd, np, npx

    params = [np.array(w, dtype="float64", ctx=device) for w in weights]
    for p in params:
        p.attach_grad()
    with autograd.record():
        hidden = np.tanh(np.dot(np.array(X, dtype="float64", ctx=device), params[0])
                         + params[1])
        scores = np.dot(hidden, params[2]) + params[3]
        loss = -npx.pick(npx.log_softmax(scores), np.array(y, ctx=device)).sum()
    loss.backward()
    return float(loss), [p.grad.asnumpy() for p in params]


def allreduce(gradients):
    """Give each device the sum over all, in place."""
    for same in zip(*gradients):
        total = sum(same)
        for g in same:
            g[:] = total


def norm_of(arrays):
    return float(numpy.sqrt(sum((x * x).sum() for x in arrays)))


def global_norm(gradients, copies):
    """Return the norm over all devices, if each number exists `copies` times."""
    return float(numpy.sqrt(sum(norm_of(own) ** 2 for own in gradients) / copies))


def clip(gradients, norm, limit):
    for own in gradients:
        for g in own:
            g *= min(1, limit / norm)
