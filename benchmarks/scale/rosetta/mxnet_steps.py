"""The same steps in MXNet, in this process, with the functions of the chapters.

Each takes a problem of `problems` and returns the weights after one step, a list of
NumPy arrays in the order `p0`, `p1`, …; `heads` returns more after them.
"""

import d2l_ext  # noqa: F401, I001  (before mxnet, see d2l_ext.runtime)
from mxnet import autograd, gluon, np, npx

from d2l_ext import data_parallel, tensor_parallel
from d2l_ext.data_parallel.minibatch import split_batch
from d2l_ext.devices import try_all_devices
from d2l_ext.memory import Shards
from d2l_ext.pipeline import microbatch
from d2l_ext.pipeline.schedule import gpipe
from d2l_ext.tensor_parallel import transformer
from d2l_ext.tensor_parallel.divided_layers import TENSOR
from trainkit import networks

from .problems import count

MICRO_BATCHES = 4
#: The parameters of `problems.heads`, as a decoder calls them.
BLOCK = ["attend.gain", "attend.shift", "attend.qkv", "attend.out",
         "mlp.gain", "mlp.shift", "mlp.up", "mlp.down"]


def scratch(problem, num_devices=2):
    """Data parallelism from scratch: `data_parallel.train_batch`."""
    X, y, params = _prepare(problem)
    devices = try_all_devices(num_devices)
    replicas = [data_parallel.get_params(params, device) for device in devices]
    data_parallel.train_batch(X, y, replicas, devices, float(problem["lr"]))
    return [p.asnumpy() for p in replicas[-1]]


def trainer(problem, num_devices=2):
    """Data parallelism with Gluon: `split_batch`, a `Trainer`, kvstore `device`."""
    X, y, params = _prepare(problem)
    devices = try_all_devices(num_devices)
    net, loss = gluon_lenet(params, devices), gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd",
                            {"learning_rate": float(problem["lr"])})
    with autograd.record():
        losses = [loss(net(Xs), ys) for Xs, ys in zip(*split_batch(X, y, devices))]
    for device_loss in losses:
        device_loss.backward()
    trainer.step(len(X))
    after = [p.data(devices[-1]).asnumpy() for p in net.collect_params().values()]
    return [a.T if a.ndim == 2 else a for a in after]


def gluon_lenet(params, devices):
    """`networks.lenet` with these parameters, in the order of `lenet.SHAPES`."""
    net = networks.lenet()
    net.initialize(ctx=devices)
    net(np.zeros((1, 1, 28, 28), ctx=devices[0]))  # now it knows its shapes
    for p, value in zip(net.collect_params().values(), params):
        # Dense stores (out, in), the text (in, out)
        p.set_data(value.T if value.ndim == 2 else value)
    return net


def pipeline(problem):
    """A pipeline of two stages and four micro-batches: `microbatch.gradients`."""
    X, y, params = _prepare(problem)
    params = [p.T if p.ndim == 2 else p for p in params]
    stages = microbatch.dense_stages(params, try_all_devices(2))
    schedule = gpipe(len(stages), MICRO_BATCHES)
    microbatch.gradients(stages, schedule, X, y, _half_squares)
    step = float(problem["lr"]) / len(X)
    after = [p - step * g for s in stages for p, g in zip(s.params, s.grads)]
    return [a.asnumpy().T if a.ndim == 2 else a.asnumpy() for a in after]


def tensor_split(problem):
    """A block cut by columns, then by rows: `tensor_parallel`."""
    X, y, params = _prepare(problem)
    devices = try_all_devices(2)
    parts = tensor_parallel.split_block(params, devices)
    Xs, ys = (tensor_parallel.replicate(a, devices) for a in (X, y))
    outs, hidden = tensor_parallel.forward(Xs, parts)
    errors = [out - t for out, t in zip(outs, ys)]
    _, gradients = tensor_parallel.backward(errors, Xs, hidden, parts)
    step = float(problem["lr"]) / len(X)
    after = [[p - step * g for p, g in zip(*of_device)]
             for of_device in zip(parts, gradients)]
    return tensor_parallel.join_block(after)


def sharded(problem, shard="parameters"):
    """Five steps of Adam on two devices that divide what `shard` says: `Shards`."""
    X, y, params = _prepare(problem)
    layers = [(_dense_relu, [W.T, b]) for W, b in zip(params[::2], params[1::2])]
    options = {"learning_rate": float(problem["lr"]), "epsilon": 1e-12}
    shards = Shards(layers, try_all_devices(2), shard, "adam", options)
    for _ in range(5):
        shards.train_batch(X, y, _half_squares)
    after = shards.pack()
    after = [after[f"param.{i}"] for i in range(len(params))]
    return [a.T if a.ndim == 2 else a for a in after]


def heads(problem, num_devices=2):
    """A decoder's block over its heads: `transformer`, with a squared distance.

    Returns the weights, the output, the gradient of the input, and the gradients.
    """
    X, y, params = _prepare(problem)
    devices = try_all_devices(num_devices)
    decoder = transformer.Decoder(num_devices, X.shape[-1], int(problem["heads"]), 1)
    names = [f"0.{name}" for name in BLOCK]
    whole = {name: p.asnumpy().T if p.ndim == 2 else p.asnumpy()
             for name, p in zip(names, params)}
    parts = transformer.split(whole, devices, decoder)
    n = X.size // X.shape[-1]
    given = [X.reshape(n, -1).copyto(device) for device in devices], None, None
    xs, ys, back = transformer.through(
        decoder.halves()[:-1], given, parts, decoder, X.shape[1]
    )
    outs = [x + y for x, y in zip(xs, TENSOR.collect(ys))]
    dYs = [(out - y.reshape(n, -1).copyto(out.ctx)) / n for out in outs]
    dXs = back(dYs, dYs)
    grads = transformer.join([{k: p.grad for k, p in part.items()} for part in parts])
    after = [whole[name] - problem["lr"] * grads[name] for name in names]
    turned = [a.T if a.ndim == 2 else a for a in (*after, *(grads[k] for k in names))]
    out, dX = (a[-1].asnumpy().reshape(X.shape) for a in (outs, dXs))
    return [*turned[: len(names)], out, dX, *turned[len(names) :]]


def _dense_relu(X, params):
    return npx.relu(npx.fully_connected(X, *params, num_hidden=params[1].size))


def _half_squares(out, y):
    return ((out - y) ** 2).sum(axis=1) / 2


def _prepare(problem):
    params = [np.array(problem[f"p{i}"]) for i in range(count(problem))]
    y = problem["y"]
    return np.array(problem["X"]), np.array(y, dtype=y.dtype), params
