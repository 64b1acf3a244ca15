"""What every layer of a network costs: its time measured, its bytes counted."""

from math import prod
from statistics import median
from time import perf_counter

import mxnet as mx

from .step_time import Layer
from .subgraph import groups, subgraph

FLOAT32 = 4  # bytes


def measure(symbol, shapes, values, devices, rounds=5):
    """The cost of every group of `symbol`, in order: a list of `step_time.Layer`.

        measure(symbol, shapes, {"data": X, "softmax_label": y}, devices)

    `shapes`: of the inputs, as `lstm.input_shapes` gives them; all other arguments
    are parameters. `values`: of the inputs that may not be random. `devices`: the
    first runs the groups, and sends to the second. `rounds`: each group is run once
    to warm up, then `rounds` times, in turns with the others, which a change of the
    machine's speed then meets alike; medians are kept.

    A group is cut out of the graph and run alone, forward, then backward, the engine
    empty before and after. In a step of the whole network, the operators of all groups
    take turns on a device, and a clock could not part them.

    Raises `ValueError` for a node without a group, fewer than one round, and fewer
    than two devices. Developed in the chapter *Where to cut*.
    """
    if rounds < 1 or len(devices) < 2:
        raise ValueError(
            f"{rounds} rounds on {len(devices)} devices: measuring takes one round "
            "and two devices at least, one that works and one that is sent to"
        )
    names = groups(symbol)
    runs = [_bind(symbol, name, shapes, values, devices[0]) for name in names]
    turns = [[_time(run, devices[1]) for run in runs] for _ in range(rounds + 1)]
    return [
        Layer(
            name,
            *[median(turn[i][column] for turn in turns[1:]) for column in range(3)],
            whole=is_whole(symbol, name),
            **count(symbol, name, shapes),
        )
        for i, name in enumerate(names)
    ]


def count(symbol, group, shapes):
    """Bytes that a group holds in float32: `parameter_bytes` and `activation_bytes`.

    Activations are the results of its operators: what the backward pass may need. It
    is an upper bound, as MXNet gives some of their memory to others. Gradients come on
    top: as many bytes as the parameters have. `shapes`: as in `measure`.
    """
    part, inputs = subgraph(symbol, group, shapes)
    arguments, _, _ = part.infer_shape(**inputs)
    _, everything, _ = part.get_internals().infer_shape(**inputs)
    sizes = dict(zip(part.list_arguments(), map(prod, arguments)))
    parameters = sum(size for name, size in sizes.items() if name not in inputs)
    activations = sum(map(prod, everything)) - sum(sizes.values())
    return {
        "parameter_bytes": FLOAT32 * parameters,
        "activation_bytes": FLOAT32 * activations,
    }


def is_whole(symbol, group):
    """Whether a group of `lstm.lstm_unroll` works on all time steps at once."""
    concatenated = len(symbol.list_outputs()) == 1
    return group == "embed" or (group == "decode" and concatenated)


def _bind(symbol, group, shapes, values, device):
    """An executor of a group alone, and gradients to start its backward pass with."""
    part, inputs = subgraph(symbol, group, shapes)
    # The network's own inputs need no gradient; what comes from other groups does.
    needs = {n: "null" if n in shapes else "write" for n in part.list_arguments()}
    executor = part.simple_bind(device, grad_req=needs, **inputs)
    for name, array in executor.arg_dict.items():
        array[:] = values.get(name, mx.nd.random.uniform(-0.1, 0.1, array.shape))
    return executor, [mx.nd.ones_like(output) for output in executor.outputs]


def _time(run, other):
    """Milliseconds of a forward and a backward pass, and of sending the results on.

    Before and after each the engine is empty.
    """
    executor, ones = run
    marks = [_when_empty()]
    executor.forward(is_train=True)
    marks.append(_when_empty())
    executor.backward(ones)
    marks.append(_when_empty())
    for output in executor.outputs:
        output.copyto(other).wait_to_read()
    marks.append(_when_empty())
    return [(end - start) * 1e3 for start, end in zip(marks, marks[1:])]


def _when_empty():
    """Wait until the engine has nothing to do, and read the clock."""
    mx.nd.waitall()
    return perf_counter()
