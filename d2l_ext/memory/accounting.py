"""Where the memory of a training step goes: what stays, and what comes with a batch.

Between two steps a device keeps its states, so many bytes for each parameter. From
forward to backward it keeps activations, so many bytes for each example.
"""

from math import prod

import numpy

from ..checks import known_name, whole_number

#: Arrays of its own that an optimizer keeps for each parameter.
OPTIMIZERS = {"sgd": 0, "momentum": 1, "adam": 2}


def states(num_parameters, optimizer="sgd", half=False):
    """Bytes that stay between two steps, by kind: a dict of whole numbers.

        sum(states(1_000_000, "adam").values())  # 16,000,000

    `optimizer`: one of `OPTIMIZERS`. `half`: weights and gradients of two bytes,
    updated by way of a copy of the weights in single precision, the master copy.
    Raises `ValueError` for another optimizer or fewer parameters than one.

    Source: Rajbhandari et al. (2020), section 3.1. Developed in the chapter
    *Where the memory goes*.
    """
    known_name("optimizer", optimizer, OPTIMIZERS)
    whole_number("num_parameters", num_parameters)
    short = 2 if half else 4
    return {
        "weights": short * num_parameters,
        "gradients": short * num_parameters,
        "master copy": 4 * num_parameters if half else 0,
        "optimizer": 4 * num_parameters * OPTIMIZERS[optimizer],
    }


def activations(layers, X):
    """Bytes of each layer's output for the minibatch `X`: a list of whole numbers.

    `layers`: functions, one after the other, such as the blocks of a Gluon network.
    Only the first example of `X` (n, …) is computed: all others have its shapes.

    Backward needs each of these arrays once, as this layer's output or as the next
    layer's input, so they stay from forward to backward. What a ReLU is applied to
    does not stay; what a tanh is applied to does, and is not in these numbers. Raises
    `ValueError` without examples.

    Developed in the chapter *Where the memory goes*.
    """
    whole_number("examples in X", len(X))
    out, sizes = X[:1], []
    for layer in layers:
        out = layer(out)
        sizes.append(len(X) * prod(out.shape[1:]) * numpy.dtype(out.dtype).itemsize)
    return sizes
