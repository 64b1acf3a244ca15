"""Right answers of the part on memory, written otherwise."""

from itertools import chain

import numpy


def where_memory_goes_2_a(sizes, every):
    most = inputs = 0
    for start in range(0, len(sizes), every):
        if start:
            inputs += sizes[start - 1]
        most = max(most, inputs + sum(sizes[start : start + every]))
    return most


def where_memory_goes_2_b(sizes, every):
    """From the last segment to the first, as backward goes."""
    if len(sizes) <= every:
        return sum(sizes)
    last = (len(sizes) - 1) // every * every
    kept = sum(sizes[s - 1] for s in range(every, last + 1, every))
    return max(kept + sum(sizes[last:]), where_memory_goes_2_b(sizes[:last], every))


def where_memory_goes_3_a(layers, x, dy, every):
    def through(segment, x):
        """Back through layers whose first input is x, and forward before that."""
        if len(segment) == 1:
            return segment[0].backward(x, dy)
        dx = through(segment[1:], segment[0].forward(x))
        return segment[0].backward(x, dx)

    inputs = {0: x}
    for i in range(len(layers) - every):
        x = layers[i].forward(x)
        if (i + 1) % every == 0:
            inputs[i + 1] = x
    for start in sorted(inputs, reverse=True):
        x = None
        dy = through(layers[start : start + every], inputs.pop(start))
    return dy


def where_memory_goes_3_b(layers, x, dy, every):
    if len(layers) > every:
        middle = x
        for layer in layers[:every]:
            middle = layer.forward(middle)
        dy = where_memory_goes_3_b(layers[every:], middle, dy, every)
        del middle
    stack = [x]
    while len(stack) < min(every, len(layers)):
        stack += [layers[len(stack) - 1].forward(stack[-1])]
    while stack:
        dy = layers[len(stack) - 1].backward(stack.pop(), dy)
    return dy


def half_precision_2_a(parts, mean_gradient):
    pairs = [(len(piece), mean_gradient(piece)) for piece in parts]
    words = sum(n for n, _ in pairs)
    return sum(n / words * gradient for n, gradient in pairs)


def half_precision_2_b(parts, mean_gradient):
    """A mean so far, moved towards each piece's."""
    mean, seen = 0.0, 0
    while (piece := next(parts, None)) is not None:
        seen += len(piece)
        mean = mean + (mean_gradient(piece) - mean) * len(piece) / seen
    return mean


def half_precision_3_a(masters, gradients, scale):
    total = numpy.stack(gradients).astype(numpy.float32).sum(axis=0)
    if not numpy.isfinite(total).all():
        return 0.5 * scale
    for i in range(len(masters)):
        numpy.subtract(masters[i], 0.1 / scale * total, out=masters[i])
    return scale


def half_precision_3_b(masters, gradients, scale):
    for g in gradients:
        if numpy.isnan(g).any() or numpy.isinf(g).any():
            return scale / 2
    update = numpy.zeros(masters[0].shape, "float64")
    for g in gradients:
        update += 0.1 * g.astype("float64") / scale
    for master in masters:
        master[...] = master - update
    return scale


def sharded_2_a(weights, gradients, states, update, gather):
    """Chunks are views: the weights of their owners are new at once."""
    n = len(weights[0]) // len(weights)
    mine = []
    for i, w in enumerate(weights):
        part = slice(i * n, (i + 1) * n)
        update(w[part], numpy.sum([g[part] for g in gradients], axis=0), states[i])
        mine.append(w[part])
    new = gather(mine)
    for w in weights:
        numpy.copyto(w, new)


def sharded_2_b(weights, gradients, states, update, gather):
    shape = len(weights), -1
    summed = numpy.add.reduce(gradients).reshape(shape)
    rows = weights[0].reshape(shape).copy()
    for row, gradient, state in zip(rows, summed, states):
        update(row, gradient, state)
    weights[0][:] = gather(list(rows))
    for other in weights[1:]:
        other[:] = weights[0]


def sharded_3_a(L):
    whole = []
    works = [("forward", l) for l in range(L)]
    works += [("backward", l) for l in range(L - 1, -1, -1)]
    for what, l in works:
        if l not in whole:
            whole.append(l)
            yield "gather", l
        yield what, l
        if what == "forward" and l < L - 2 or what == "backward":
            whole.remove(l)
            yield "drop", l


def sharded_3_b(L):
    there = [[("gather", l), ("forward", l), ("drop", l)] for l in range(L - 2)]
    last = range(max(0, L - 2), L)
    turn = [(what, l) for l in last for what in ("gather", "forward")]
    turn += [(what, l) for l in last[::-1] for what in ("backward", "drop")]
    back = [[("gather", l), ("backward", l), ("drop", l)] for l in range(L - 2)]
    return chain(*there, turn, *back[::-1])
