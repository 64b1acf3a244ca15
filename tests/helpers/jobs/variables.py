"""Prints, as JSON, what MXNet's environment variables change in this process."""

import d2l_ext  # noqa: F401, I001
import json
import os

import mxnet as mx


def gradient_sums():
    """The operators that add up the gradient of a variable that is read five times."""
    x = mx.sym.var("x")
    total = sum((x * k for k in range(2, 6)), mx.sym.zeros_like(x))
    text = total.simple_bind(mx.cpu(), x=(2,), grad_req="write").debug_str()
    return {name: text.count(f"Op:{name}") for name in ("_grad_add", "add_n")}


def updates_on_store():
    """Whether a Module would give its optimizer to a store of several devices."""
    return mx.model._create_kvstore("device", 2, {"w": mx.nd.ones(2)})[1]


def threads(devices):
    """Threads of this process, when so many CPU contexts have worked."""
    for i in range(devices):
        (mx.nd.ones(3, ctx=mx.cpu(i)) + 1).wait_to_read()
    return len(os.listdir("/proc/self/task"))


one, two = threads(1), threads(2)
print(json.dumps({
    "gradient sums": gradient_sums(),
    "updates on store": updates_on_store(),
    "arrays in one update": mx.optimizer.SGD().aggregate_num,
    "threads": one,
    "threads of a second device": two - one,
}))
