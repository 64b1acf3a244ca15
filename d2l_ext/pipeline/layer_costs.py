"""The costs of a network's layers: measured times, counted bytes.

A layer is a `ctx_group`, cut out of the graph and run alone.
"""

import json
from statistics import median
from time import perf_counter

import mxnet as mx

from .graph import Graph, float32_bytes, group_of, groups
from .partition import Layer


def measure(symbol, shapes, values, devices, rounds=5):
    """Return the cost of every group of `symbol`, in order: a list of
    `partition.Layer`.

        measure(symbol, shapes, {"data": X, "softmax_label": y}, devices)

    `shapes`: of the inputs, as `lstm.input_shapes` gives them; all other arguments
    are parameters. `values`: of the inputs that must not be random. `devices`: the
    first runs the groups and sends results to the second. `rounds`: each group runs
    once to warm up, then `rounds` times, alternating with the others; medians are kept.

    A group is cut out of the graph and runs alone, with an idle engine before and
    after: in a step of the whole network, the operators of all groups interleave.

    Raises `ValueError` for fewer than one round or two devices.
    Developed in the chapter *Where to cut*.
    """
    if rounds < 1 or len(devices) < 2:
        raise ValueError(
            f"{rounds} rounds on {len(devices)} devices: measuring needs at least "
            "one round and two devices, one that computes and one that receives"
        )
    names = groups(symbol)
    runs = [_bind(symbol, name, shapes, values, devices[0]) for name in names]
    turns = [[_time(run, devices[1]) for run in runs] for _ in range(rounds + 1)]
    return [
        Layer(
            name,
            *[median(turn[i][column] for turn in turns[1:]) for column in range(3)],
            whole=is_whole(symbol, name),
            **held_bytes(symbol, name, shapes),
        )
        for i, name in enumerate(names)
    ]


def held_bytes(symbol, group, shapes):
    """Return the bytes that a group holds in float32: `parameter_bytes` and
    `activation_bytes`.

    Activations, the results of its operators, are an upper bound, because MXNet reuses
    some of their memory. Gradients are not included. `shapes`: as in `measure`. Raises
    `ValueError` for a group that `symbol` does not have.
    """
    graph, parameters, activations = Graph(symbol, shapes), 0, 0
    for i, node in graph.members(group).items():
        if node["op"] != "null":
            activations += sum(map(float32_bytes, graph.shapes[i]))
        elif graph.is_parameter(node):
            parameters += float32_bytes(graph.shapes[i][0])
    return {"parameter_bytes": parameters, "activation_bytes": activations}


def is_whole(symbol, group):
    """Return whether a group of `lstm.lstm_unroll` works on all time steps at once."""
    concatenated = len(symbol.list_outputs()) == 1
    return group == "embed" or (group == "decode" and concatenated)


def subgraph(symbol, group, shapes):
    """Return the part of `symbol` in `group`: a symbol, and its inputs' shapes.

    A value that the group reads from another becomes a variable, `NAME_0` for the first
    result of node NAME. A value that another group reads, or a result of the whole
    symbol, becomes an output. `shapes`: of the inputs of `symbol`, by name. Raises
    `ValueError` for a group that `symbol` does not have. Source: the JSON that
    `Symbol.tojson` writes. Developed in *Where to cut*.
    """
    whole = Graph(symbol, shapes)
    kept, place, inputs = [], {}, {}

    def variable(source, output):
        """Return the position of a variable for another group's value."""
        name = f"{whole.nodes[source]['name']}_{output}"
        if name not in place:
            inputs[name] = whole.shapes[source][output]
            place[name] = len(kept)
            kept.append({"op": "null", "name": name, "inputs": []})
        return place[name]

    for i, node in whole.members(group).items():
        reads = [
            [place[source], output, 0] if source in place
            else [variable(source, output), 0, 0]
            for source, output, *_ in node["inputs"]
        ]
        place[i] = len(kept)
        kept.append({**node, "inputs": reads})
        if node["op"] == "null" and node["name"] in shapes:
            inputs[node["name"]] = shapes[node["name"]]
    heads = [[place[i], output, 0] for i, output in _leaving(whole, group)]
    return _symbol(whole, kept, heads), inputs


def _symbol(whole, nodes, heads):
    arguments = [i for i, node in enumerate(nodes) if node["op"] == "null"]
    # The attributes hold MXNet's version, without which it treats the graph as old.
    cut = {**whole.json, "nodes": nodes, "arg_nodes": arguments, "heads": heads}
    del cut["node_row_ptr"]  # MXNet recounts them
    return mx.sym.load_json(json.dumps(cut))


def _leaving(whole, group):
    """Return the results of `group` that are read outside it: (node, output)s."""
    read = list(whole.json["heads"])
    for node in whole.nodes:
        if group_of(node) != group:
            read += node["inputs"]
    ours = [(e[0], e[1]) for e in read if group_of(whole.nodes[e[0]]) == group]
    return list(dict.fromkeys(ours))


def _bind(symbol, group, shapes, values, device):
    """Return an executor of a group alone, and head gradients for its backward pass."""
    part, inputs = subgraph(symbol, group, shapes)
    # The network's inputs need no gradient; values from other groups do.
    needs = {n: "null" if n in shapes else "write" for n in part.list_arguments()}
    with mx.test_utils.environment("MXNET_EXEC_BULK_EXEC_TRAIN", "0"):  # as in a step
        executor = part.simple_bind(device, grad_req=needs, **inputs)
    for name, array in executor.arg_dict.items():
        array[:] = values.get(name, mx.nd.random.uniform(-0.1, 0.1, array.shape))
    return executor, [mx.nd.ones_like(output) for output in executor.outputs]


def _time(run, other):
    """Return the milliseconds of a forward and a backward pass, and of sending the
    results.

    The engine is idle before and after each.
    """
    executor, ones = run
    works = (
        lambda: None,
        lambda: executor.forward(is_train=True),
        lambda: executor.backward(ones),
        lambda: [output.copyto(other).wait_to_read() for output in executor.outputs],
    )
    marks = []
    for work in works:
        work()
        mx.nd.waitall()
        marks.append(perf_counter())
    return [(end - start) * 1e3 for start, end in zip(marks, marks[1:])]
