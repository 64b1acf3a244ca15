"""The weights and data from which every framework takes the same step.

A problem is a dict of NumPy arrays: `X`, `y`, the learning rate `lr`, and the
parameters `p0`, `p1`, …. A dense layer's weights are (in, out).
"""

import numpy

from d2l_ext.data_parallel.lenet import SHAPES

BATCH, WIDTH = 64, 48


def lenet(seed=0):
    """Return LeNet, images `X` (64, 1, 28, 28), classes `y` (64,): for data
    parallelism.

    Random pixels: a step has the same arithmetic whatever is on the picture.
    """
    rng = numpy.random.default_rng(seed)
    X = rng.random((BATCH, 1, 28, 28))
    y = rng.integers(10, size=BATCH)
    return {**_problem(X, _params(rng, SHAPES)), "y": y}


def blocks(seed=0):
    """Return four dense blocks of 48 units with ReLU, for a two-stage pipeline."""
    rng = numpy.random.default_rng(seed)
    X = rng.normal(size=(BATCH, WIDTH))
    return _problem(X, _params(rng, [(WIDTH, WIDTH), (WIDTH,)] * 4), X[:, ::-1])


def sharded(seed=0):
    """Return `blocks`, at a rate for Adam: for devices that divide its states."""
    return {**blocks(seed), "lr": numpy.float32(0.001)}


def block(seed=0):
    """Return dense (48, 192), ReLU, dense (192, 48): for splitting in a layer."""
    rng, wide = numpy.random.default_rng(seed), 4 * WIDTH
    X = rng.normal(size=(BATCH, WIDTH))
    shapes = [(WIDTH, wide), (wide,), (wide, WIDTH), (WIDTH,)]
    return _problem(X, _params(rng, shapes), X[:, ::-1])


def heads(seed=0):
    """Return a block of a decoder, `X` (16, 4, 48), four `heads`: for dividing it over
    them.

    Positions, sequences, values of each. The parameters: gain, shift, the weights of
    queries, keys and values (head after head), of the output; gain, shift, and the MLP.
    """
    rng, norm = numpy.random.default_rng(seed), [(WIDTH,), (WIDTH,)]
    X, y = rng.normal(size=(2, 16, 4, WIDTH))
    attention = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH)]
    mlp = [(WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    problem = _problem(X, _params(rng, [*norm, *attention, *norm, *mlp]), y)
    for gain in ("p0", "p4"):
        problem[gain] += 1
    return {**problem, "heads": numpy.int64(4)}


def count(problem):
    """Return how many parameters a problem has."""
    return sum(name.startswith("p") for name in problem)


def _params(rng, shapes):
    """Yield weights from N(0, 2 / inputs), biases that differ from zero."""
    for shape in shapes:
        inputs = shape[0] if len(shape) == 2 else max(1, int(numpy.prod(shape[1:])))
        yield rng.normal(0, (2 / inputs) ** 0.5 if len(shape) > 1 else 0.1, shape)


def _problem(X, params, y=None):
    arrays = {"X": X, **{f"p{i}": p for i, p in enumerate(params)}}
    if y is not None:
        arrays["y"] = y
    arrays = {k: numpy.ascontiguousarray(a, "float32") for k, a in arrays.items()}
    return {**arrays, "lr": numpy.float32(0.1)}
