"""What a placement costs: bytes between devices, and parameters on each.

Both are counted from the graph; nothing runs.
"""

import json
from collections import Counter, namedtuple
from math import prod

#: Bytes of one training step from one device to another, and the copies they take.
Crossing = namedtuple("Crossing", "source target forward backward copies")
ITEMSIZE = 4  # bytes of a float32


def crossings(symbol, group2ctx, shapes):
    """The values that a training step copies between devices: a list of `Crossing`.

    `symbol`, `group2ctx`, `shapes`: as for `pipeline.bind`. An entry for each pair
    of devices, in the order of its first copy. `forward`: bytes of the values that
    are needed there; a value that several nodes need goes once. `backward`: bytes
    of their gradients, on the way back. `copies`: messages, in both directions.

    MXNet puts a copy into the graph wherever a value is needed on another device
    than its own. Developed in the chapter *The LSTM as a pipeline*.
    """
    graph = _Graph(symbol, shapes)
    seen, total = set(), {}
    for node in graph.nodes:
        for i, output, *_ in node["inputs"]:
            source, target = (group2ctx[_group(n)] for n in (graph.nodes[i], node))
            if source == target or (i, output, target) in seen:
                continue
            seen.add((i, output, target))
            nbytes, back = graph.nbytes(i, output), int(graph.has_gradient[i])
            total.setdefault((source, target), Counter()).update(
                forward=nbytes, backward=nbytes * back, copies=1 + back
            )
    return [Crossing(*ends, **counted) for ends, counted in total.items()]


def param_bytes(symbol, group2ctx, shapes):
    """Bytes of the parameters on each device: {context: bytes}.

    `symbol`, `group2ctx`, `shapes`: as for `pipeline.bind`. Gradients take as many
    again.
    """
    graph = _Graph(symbol, shapes)
    total = {device: 0 for device in group2ctx.values()}
    for i, node in enumerate(graph.nodes):
        if graph.is_parameter(node):
            total[group2ctx[_group(node)]] += graph.nbytes(i, 0)
    return total


class _Graph:
    """The nodes of a symbol, and the size of every value."""

    def __init__(self, symbol, shapes):
        graph, values = json.loads(symbol.tojson()), symbol.get_internals()
        self.nodes, self._first = graph["nodes"], graph["node_row_ptr"]
        self._shapes = values.infer_shape(**shapes)[1]
        self._inputs = set(shapes)
        self.has_gradient = []
        for node in self.nodes:  # inputs come before what they go into
            found = any(self.has_gradient[i] for i, *_ in node["inputs"])
            self.has_gradient.append(found or self.is_parameter(node))

    def is_parameter(self, node):
        return node["op"] == "null" and node["name"] not in self._inputs

    def nbytes(self, i, output):
        """Bytes of an output of node i."""
        return ITEMSIZE * prod(self._shapes[self._first[i] + output])


def _group(node):
    return node["attrs"]["__ctx_group__"]
