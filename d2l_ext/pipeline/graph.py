"""A graph with groups on several devices: place, bind, count and train it."""

import json
import os
from collections import Counter, defaultdict, namedtuple
from functools import cached_property
from math import prod

import mxnet as mx

#: Bytes per training step from one device to another, and the number of copies.
Crossing = namedtuple("Crossing", "source target forward backward copies")

#: Of so many gradients of a value MXNet makes the sum in place. It reads the variable
#: once, too.
IN_PLACE = int(os.environ.get("MXNET_EXEC_INPLACE_GRAD_SUM_CAP") or 8)


def split(names, cuts):
    """Cut the list of groups `names` before the positions `cuts`.

        split(["embed", "layer0", "layer1", "decode"], [2])
        [["embed", "layer0"], ["layer1", "decode"]]

    Raises `ValueError` for cuts that are not in ascending order within the list.
    """
    edges = [0, *cuts, len(names)]
    if any(start >= stop for start, stop in zip(edges, edges[1:])):
        raise ValueError(
            f"cuts {list(cuts)} leave a part of the {len(names)} groups empty: they "
            f"must ascend, above 0 and below {len(names)}"
        )
    return [names[start:stop] for start, stop in zip(edges, edges[1:])]


def placement(parts, devices):
    """Map each group to its device: a dict for `bind`.

    `parts`: list i holds the names of the groups for `devices[i]`.

    Raises `ValueError` for a part without a device, and a group in two parts.
    """
    if len(parts) > len(devices):
        raise ValueError(
            f"{len(parts)} parts for {len(devices)} devices: part {len(devices)}, "
            f"{parts[len(devices)]}, has no device"
        )
    group2ctx = {}
    for part, device in zip(parts, devices):
        for name in part:
            if name in group2ctx:
                raise ValueError(
                    f"group {name!r} is placed twice, on {group2ctx[name]} and {device}"
                )
            group2ctx[name] = device
    return group2ctx


def bind(symbol, group2ctx, shapes, params=None, shared=None):
    """Make `symbol` runnable, with each group on its device; return a `Pipeline`.

    `group2ctx`: the context of every `ctx_group` of the symbol, as `placement`
    gives it. `shapes`: of the inputs; all other arguments are parameters. `params`:
    initial values by name, which are copied; default zeros. `shared`: a `Pipeline`
    of a different length, whose parameters, gradients and memory this one shares.
    Inputs get no gradient.

    Raises `ValueError` for a node in no group, a group without a device, a GPU that is
    not there, `params` that lack a name, and a value with so many readers, whose
    gradients come from several devices, that MXNet may compute a wrong gradient.
    Source: `group2ctx` of MXNet's `Symbol.simple_bind`. Developed in the chapter
    *The LSTM as a pipeline*.
    """
    _check_placed(groups(symbol), group2ctx)
    _check_sums(Graph(symbol, shapes), group2ctx)
    names = [n for n in symbol.list_arguments() if n not in shapes]
    missing = [] if params is None else [n for n in names if n not in params]
    if missing:
        raise ValueError(f"params lack {missing}, which the symbol needs")
    # No bulks: a wait for one result would wait for its whole bulk.
    with mx.test_utils.environment("MXNET_EXEC_BULK_EXEC_TRAIN", "0"):
        executor = symbol.simple_bind(
            ctx=next(iter(group2ctx.values())),
            group2ctx=group2ctx,
            grad_req={n: "null" if n in shapes else "write"
                      for n in symbol.list_arguments()},
            shared_arg_names=names if shared else None,
            shared_exec=shared.executor if shared else None,
            shared_buffer={} if shared else None,  # without it nothing is shared
            **shapes,
        )
    pipeline = Pipeline(executor, symbol, group2ctx, names)
    for name in names if params else []:
        params[name].copyto(pipeline.params[name])
    return pipeline


class Pipeline:
    """A bound symbol, its parameters and their gradients, each on its device.

    `params`: dict from name to array. `executor`: MXNet's own, for inspection.
    Created by `bind`. No method waits for the engine.
    """

    def __init__(self, executor, symbol, group2ctx, names):
        self.executor, self.symbol, self.group2ctx = executor, symbol, group2ctx
        self.params = {n: executor.arg_dict[n] for n in names}

    def forward(self, X, y, is_train=False):
        """Run forward on a minibatch; return the `outputs`.

        `X`, `y`: values for `data` and `softmax_label`, (T, N).
        """
        for name, value in (("data", X), ("softmax_label", y)):
            mx.nd.array(value).copyto(self.executor.arg_dict[name])
        return self.executor.forward(is_train=is_train)

    def forward_backward(self, X, y):
        """Run forward and backward on a minibatch; the results are in `gradients()`."""
        self.forward(X, y, is_train=True)
        self.executor.backward()

    @property
    def outputs(self):
        """The results of the last forward pass, a list of arrays."""
        return self.executor.outputs

    def gradients(self):
        """Return the gradient of every parameter: a dict from name to array."""
        return {n: self.executor.grad_dict[n] for n in self.params}

    def update(self, lr, count=1):
        """Update the parameters in place by plain SGD, each on its own device.

        `lr`: learning rate. `count`: the gradients are divided by it; the number of
        labels makes a sum of losses a mean.
        """
        for name, grad in self.gradients().items():
            w = self.params[name]
            mx.nd.sgd_update(w, grad, lr=lr, wd=0.0, rescale_grad=1 / count, out=w)


def crossings(symbol, group2ctx, shapes):
    """Return the values that a training step copies between devices: a list of
    `Crossing`.

    `symbol`, `group2ctx`, `shapes`: as for `pipeline.bind`. One entry per pair
    of devices, in the order of its first copy. `forward`: bytes of the values that
    `target` needs; a value that several nodes need is sent once. `backward`: bytes
    of the gradients that go from `target` to `source`. The gradients of a value's
    readers are added on the device of the last reader in the graph, which sends on the
    sum. `copies`: messages, in both directions. Where `elemwise_add` or `add_n` reads a
    value with other readers, as in a residual connection, the counts can be wrong:
    MXNet passes the gradient through such a sum, and may add on another device.

    Developed in the chapter *The LSTM as a pipeline*.
    """
    graph, total = Graph(symbol, shapes), {}
    on = [group2ctx[group_of(node)] for node in graph.nodes]

    def count(source, target, **moved):
        if source != target:
            counted = total.setdefault((source, target), Counter(forward=0, backward=0))
            counted.update(moved, copies=1)

    for (i, output), readers in graph.readers().items():
        size = float32_bytes(graph.shapes[i][output])
        devices = [on[reader] for reader in readers]
        for target in dict.fromkeys(devices):
            count(on[i], target, forward=size)
        if graph.has_gradient[i]:
            *others, last = devices
            for device in others:
                count(last, device, backward=size)
            count(on[i], last, backward=size)
    return [Crossing(*ends, **counted) for ends, counted in total.items()]


def param_bytes(symbol, group2ctx, shapes):
    """Return the bytes of the parameters on each device: {context: bytes}.

    `symbol`, `group2ctx`, `shapes`: as for `pipeline.bind`. Gradients take the
    same number again.
    """
    graph = Graph(symbol, shapes)
    total = {device: 0 for device in group2ctx.values()}
    for i, node in enumerate(graph.nodes):
        if graph.is_parameter(node):
            total[group2ctx[group_of(node)]] += float32_bytes(graph.shapes[i][0])
    return total


class Graph:
    """The nodes of a symbol, as its `json` has them, and the shape of every value.

    `shapes`: of the inputs, by name. The attribute `shapes` is a list: for each of
    `nodes`, the shapes of its results.
    """

    def __init__(self, symbol, shapes):
        self.symbol, self.inputs = symbol, shapes
        self.json = json.loads(symbol.tojson())
        self.nodes = self.json["nodes"]
        self.has_gradient = []
        for node in self.nodes:  # inputs come before the nodes that read them
            has = any(self.has_gradient[i] for i, *_ in node["inputs"])
            self.has_gradient.append(has or self.is_parameter(node))

    @cached_property
    def shapes(self):
        found = self.symbol.get_internals().infer_shape(**self.inputs)[1]
        first = self.json["node_row_ptr"]  # where each node's results start
        return [found[a:b] for a, b in zip(first, first[1:])]

    def is_parameter(self, node):
        """Return whether a node is a variable and not an input."""
        return node["op"] == "null" and node["name"] not in self.inputs

    def readers(self):
        """Return the nodes that read a value: a list of numbers by (node, result)."""
        found = defaultdict(list)
        for reader, node in enumerate(self.nodes):
            for i, output, *_ in node["inputs"]:
                found[i, output].append(reader)
        return found

    def members(self, group):
        """Return a group's nodes, by number. Raises `ValueError` if there are none."""
        found = {i: x for i, x in enumerate(self.nodes) if group_of(x) == group}
        if not found:
            names = sorted({group_of(node) for node in self.nodes} - {None})
            raise ValueError(f"there is no group {group!r}, only {names}")
        return found


def float32_bytes(shape):
    """Return the bytes of a float32 array."""
    return 4 * prod(shape)


def groups(symbol):
    """Return the names of the `ctx_group`s of `symbol`, in the order in which data
    reaches them.

    Raises `ValueError` for a node that is in no group.
    """
    nodes = json.loads(symbol.tojson())["nodes"]
    for node in nodes:
        if group_of(node) is None:
            raise ValueError(
                f"node {node['name']!r} is in no group: make it inside "
                "mx.AttrScope(ctx_group=…), so that it can be placed"
            )
    nodes.sort(key=lambda node: node["op"] == "null")  # variables may come early
    return list(dict.fromkeys(map(group_of, nodes)))


def group_of(node):
    """Return the `ctx_group` of a node of a symbol's JSON, or None."""
    return node.get("attrs", {}).get("__ctx_group__")


def _check_sums(graph, group2ctx):
    """Raise `ValueError` for a gradient whose summands MXNet 1.9.1 may lose.

    From `IN_PLACE` summands on, it adds them in place, one after the other; one that
    was copied from another device replaces the sum instead. A sum passes on the
    gradient of one of its readers, the last that has one: all of them count here.
    """
    readers = graph.readers()

    def devices(found):
        """Return where the gradients of these readers can come from."""
        places, seen, left = set(), set(), [*found]
        while left:
            reader = left.pop()
            node = graph.nodes[reader]
            passes = node["op"] in ("elemwise_add", "add_n") and readers[reader, 0]
            if not passes:
                places.add(group2ctx[group_of(node)])
            elif reader not in seen:
                left += passes
            seen.add(reader)
        return places

    for (i, _), found in list(readers.items()):
        node = graph.nodes[i]
        many = graph.has_gradient[i] and len(found) >= IN_PLACE
        if many and len(devices(found)) > 1:
            raise ValueError(
                f"{node['name']} in group {group_of(node)!r} has {len(found)} readers, "
                "whose gradients come from several devices, and MXNet may lose a "
                "part of them: use fewer (an LSTM cell with fused=True), or set "
                f"MXNET_EXEC_INPLACE_GRAD_SUM_CAP to more than {len(found)} before the "
                "process starts"
            )


def _check_placed(names, group2ctx):
    for group in names:
        if group not in group2ctx:
            raise ValueError(
                f"group {group!r} has no device: the placement names only "
                f"{sorted(group2ctx)}"
            )
    for device in group2ctx.values():
        if device.device_type == "gpu" and device.device_id >= mx.context.num_gpus():
            raise ValueError(
                f"there is no {device}: MXNet sees {mx.context.num_gpus()} GPUs on "
                "this machine. Use devices.try_all_devices(k), or CPU contexts."
            )
