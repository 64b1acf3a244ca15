"""A graph whose groups live on several devices: place it, bind it, train it."""

import json
import os
from contextlib import contextmanager

import mxnet as mx

#: Read by MXNet whenever a symbol is bound.
BULK = "MXNET_EXEC_BULK_EXEC_TRAIN"


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
            f"must ascend, from 1 to {len(names) - 1}"
        )
    return [names[start:stop] for start, stop in zip(edges, edges[1:])]


def placement(parts, devices):
    """Say which group goes to which device: a dict for `bind`.

    `parts`: list i holds the names of the groups for `devices[i]`.

    Raises `ValueError` when there are more lists than devices, when a group is in
    two lists, and for a device that this machine does not have.
    """
    if len(parts) > len(devices):
        raise ValueError(
            f"{len(parts)} parts for {len(devices)} devices: part {len(devices)}, "
            f"{parts[len(devices)]}, has no device"
        )
    group2ctx = {}
    for part, device in zip(parts, devices):
        _check_there(device)
        for name in part:
            if name in group2ctx:
                raise ValueError(
                    f"group {name!r} is placed twice, on {group2ctx[name]} and {device}"
                )
            group2ctx[name] = device
    return group2ctx


def bind(symbol, group2ctx, shapes, params=None, shared=None, grad_req="write"):
    """Make `symbol` runnable, with each group on its device: returns a `Pipeline`.

    `group2ctx`: the context of every `ctx_group` of the symbol, as `placement`
    gives it. `shapes`: of the inputs; all other arguments are parameters. `params`:
    initial values by name, which are copied; default zeros. `shared`: a `Pipeline`
    of another length, whose parameters, gradients and memory this one uses.
    `grad_req`: what backward does with the parameters' gradients, `'write'` or
    `'add'`; inputs get none.

    Raises `ValueError` for a group without a device, a node without a group, a
    device that is not there, and `params` that lack a name.
    Source: `group2ctx` of MXNet's `Symbol.simple_bind`. Developed in the chapter
    *The LSTM as a pipeline*.
    """
    _check_placed(symbol, group2ctx)
    names = [n for n in symbol.list_arguments() if n not in shapes]
    missing = [] if params is None else [n for n in names if n not in params]
    if missing:
        raise ValueError(f"params lack {missing}, which the symbol needs")
    with _one_by_one():
        executor = symbol.simple_bind(
            ctx=next(iter(group2ctx.values())),
            group2ctx=group2ctx,
            grad_req={n: grad_req if n in names else "null"
                      for n in symbol.list_arguments()},
            shared_arg_names=names if shared else None,
            shared_exec=shared.executor if shared else None,
            shared_buffer={} if shared else None,  # without it nothing is shared
            **shapes,
        )  # fmt: skip
    pipeline = Pipeline(executor, symbol, group2ctx, names)
    for name in names if params else []:
        params[name].copyto(pipeline.params[name])
    return pipeline


class Pipeline:
    """A bound symbol, its parameters and their gradients, each on its device.

    `params`: dict from name to array. `executor`: MXNet's own, to look inside.
    Made by `bind`. No method waits for the engine.
    """

    def __init__(self, executor, symbol, group2ctx, names):
        self.executor, self.symbol, self.group2ctx = executor, symbol, group2ctx
        self.params = {n: executor.arg_dict[n] for n in names}

    def forward(self, X, y, is_train=False):
        """Forward pass of a minibatch; returns the `outputs`.

        `X`, `y`: values for `data` and `softmax_label`, (T, N).
        """
        for name, value in (("data", X), ("softmax_label", y)):
            mx.nd.array(value).copyto(self.executor.arg_dict[name])
        return self.executor.forward(is_train=is_train)

    def forward_backward(self, X, y):
        """Forward and backward pass of a minibatch: fills `gradients()`."""
        self.forward(X, y, is_train=True)
        self.executor.backward()

    @property
    def outputs(self):
        """The results of the last forward pass, a list of arrays."""
        return self.executor.outputs

    def gradients(self):
        """The gradient of every parameter: a dict from name to array."""
        return {n: self.executor.grad_dict[n] for n in self.params}

    def update(self, lr, count=1):
        """Plain SGD, every parameter on its own device.

        `lr`: learning rate. `count`: the gradients are divided by it; the number of
        labels makes a sum of losses a mean.
        """
        for name, grad in self.gradients().items():
            w = self.params[name]
            mx.nd.sgd_update(w, grad, lr=lr, wd=0.0, rescale_grad=1 / count, out=w)


@contextmanager
def _one_by_one():
    """Keep MXNet from making bulks: who waits for one result would wait for all."""
    before = os.environ.get(BULK)
    os.environ[BULK] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[BULK]
        else:
            os.environ[BULK] = before


def _check_there(device):
    if device.device_type == "gpu" and device.device_id >= mx.context.num_gpus():
        raise ValueError(
            f"there is no {device}: MXNet sees {mx.context.num_gpus()} GPUs on this "
            "machine. Use devices.try_all_devices(k), or CPU contexts."
        )


def _check_placed(symbol, group2ctx):
    for node in json.loads(symbol.tojson())["nodes"]:
        group = node.get("attrs", {}).get("__ctx_group__")
        if group is None:
            raise ValueError(
                f"node {node['name']!r} is in no group: make it inside "
                "mx.AttrScope(ctx_group=…), so that it can be placed"
            )
        if group not in group2ctx:
            raise ValueError(
                f"group {group!r} has no device: the placement names only "
                f"{sorted(group2ctx)}"
            )
    for device in group2ctx.values():
        _check_there(device)
