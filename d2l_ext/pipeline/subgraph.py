"""Cuts one `ctx_group` out of a symbol's graph, to be run and measured alone."""

import json

import mxnet as mx


def groups(symbol):
    """Names of the `ctx_group`s of `symbol`, in the order in which data reach them.

    Raises `ValueError` for an operator that is in no group.
    """
    names = {}
    for node in graph(symbol)["nodes"]:
        if node["op"] != "null":
            names[_group(node)] = None
            if None in names:
                raise ValueError(
                    f"node {node['name']!r} is in no group: make it inside "
                    "mx.AttrScope(ctx_group=…)"
                )
    return list(names)


def subgraph(symbol, group, shapes):
    """The part of `symbol` that is in `group`: a symbol, and its inputs' shapes.

    What the group reads from another becomes a variable, `NAME_0` for the first
    result of node NAME. What another group reads of it, or what is a result of the
    whole, becomes an output. `shapes`: of the inputs of `symbol`, by name.

    Raises `ValueError` for a group that the symbol has not.
    Source: the JSON that `Symbol.tojson` writes. Developed in *Where to cut*.
    """
    if group not in groups(symbol):
        raise ValueError(f"there is no group {group!r}, only {groups(symbol)}")
    whole, found = graph(symbol), _Shapes(symbol, shapes)
    nodes = whole["nodes"]
    kept, place, inputs = [], {}, {}

    def variable(source, output):
        """The place of a variable for what another group made."""
        name = f"{nodes[source]['name']}_{output}"
        if name not in place:
            inputs[name] = found.of(nodes[source], output)
            place[name] = len(kept)
            kept.append({"op": "null", "name": name, "inputs": []})
        return place[name]

    for i, node in enumerate(nodes):
        if _group(node) == group:
            reads = [
                [place[source], output, 0] if source in place
                else [variable(source, output), 0, 0]
                for source, output, *_ in node["inputs"]
            ]  # fmt: skip
            place[i] = len(kept)
            kept.append({**node, "inputs": reads})
            if node["op"] == "null" and node["name"] in shapes:
                inputs[node["name"]] = shapes[node["name"]]
    heads = [[place[i], output, 0] for i, output in leaving(symbol, group)]
    arguments = [i for i, node in enumerate(kept) if node["op"] == "null"]
    # The attributes hold MXNet's version, without which it takes the graph for old.
    cut = {**whole, "nodes": kept, "arg_nodes": arguments, "heads": heads}
    del cut["node_row_ptr"]  # where each node's results start: MXNet counts again
    return mx.sym.load_json(json.dumps(cut)), inputs


def leaving(symbol, group):
    """Results of `group` that others read or that `symbol` returns: (node, output)s."""
    whole = graph(symbol)
    nodes, read = whole["nodes"], list(whole["heads"])
    for node in nodes:
        if _group(node) != group:
            read += node["inputs"]
    ours = [(e[0], e[1]) for e in read if _group(nodes[e[0]]) == group]
    return list(dict.fromkeys(ours))


def graph(symbol):
    """The nodes and heads of `symbol`, as its JSON has them."""
    return json.loads(symbol.tojson())


def _group(node):
    return node.get("attrs", {}).get("__ctx_group__")


class _Shapes:
    """Shapes of all that the nodes of a symbol give, from those of its inputs."""

    def __init__(self, symbol, shapes):
        internals = symbol.get_internals()
        _, found, _ = internals.infer_shape(**shapes)
        self.known = dict(zip(internals.list_outputs(), found))

    def of(self, node, output):
        """MXNet names the only result of a node NAME_output, the others by number."""
        names = (f"{node['name']}_output{end}" for end in ("", output))
        return next(self.known[name] for name in names if name in self.known)
