"""One step of each kind in JAX, on two host devices: run as a program.

    python jax_steps.py sharded problem.npz weights.npz

Needs JAX and NumPy, and nothing of this book: it runs in an interpreter of its own.
Developed in the chapter *The same step in PyTorch and JAX*.
"""

import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

MICRO_BATCHES = 4


def lenet(params, X):
    """Scores (n, 10) of images `X` (n, 1, 28, 28): the network of `d2l_ext.lenet`."""
    W1, b1, W2, b2, W3, b3, W4, b4 = params
    h = _pool(jax.nn.relu(_convolve(X, W1) + b1[:, None, None]))
    h = _pool(jax.nn.relu(_convolve(h, W2) + b2[:, None, None]))
    h = jax.nn.relu(h.reshape(len(h), -1) @ W3 + b3)
    return h @ W4 + b4


def cross_entropy(params, X, y):
    """Of the softmax, mean over the examples."""
    scores = jax.nn.log_softmax(lenet(params, X))
    return -jnp.take_along_axis(scores, y[:, None], 1).mean()


def plain(problem):
    """One device, the whole minibatch."""
    X, y, params, lr = _prepare(problem)
    return jax.jit(update, static_argnums=0)(cross_entropy, params, X, y, lr)


def sharded(problem):
    """Data parallelism, left to the compiler: only the arrays say where they lie."""
    mesh = Mesh(jax.devices(), ("batch",))
    X, y, params, lr = _prepare(problem)
    X, y = jax.device_put((X, y), NamedSharding(mesh, PartitionSpec("batch")))
    params = jax.device_put(params, NamedSharding(mesh, PartitionSpec()))
    return jax.jit(update, static_argnums=0)(cross_entropy, params, X, y, lr)


def summed(problem):
    """Data parallelism with the allreduce written out: `psum` over the devices."""
    mesh = Mesh(jax.devices(), ("batch",))
    X, y, params, lr = _prepare(problem)

    def step(params, X, y):  # what one device does, with its share
        gradients = jax.grad(cross_entropy)(params, X, y)
        gradients = jax.lax.psum(gradients, "batch")
        return [p - lr / len(jax.devices()) * g for p, g in zip(params, gradients)]

    shares, whole = PartitionSpec("batch"), PartitionSpec()
    step = jax.shard_map(step, mesh=mesh, in_specs=(whole, shares, shares),
                         out_specs=whole, check_vma=False)
    return jax.jit(step)(params, X, y)


def update(loss, params, X, y, lr):
    """One step of gradient descent."""
    return [p - lr * g for p, g in zip(params, jax.grad(loss)(params, X, y))]


def pipeline(problem):
    """Pipeline parallelism: two stages, each run on the device of its arrays."""
    X, y, params, lr = _prepare(problem)
    devices, half = jax.devices(), len(params) // 2
    stages = [jax.device_put(part, d) for part, d in
              zip((params[:half], params[half:]), devices)]
    totals = [jax.tree.map(jnp.zeros_like, part) for part in stages]
    for x, t in zip(jnp.split(X, MICRO_BATCHES), jnp.split(y, MICRO_BATCHES)):
        h, back = jax.vjp(blocks, stages[0], jax.device_put(x, devices[0]))
        h, t = jax.device_put((h, t), devices[1])  # forward to the next device
        second, dh = jax.grad(second_loss, (0, 1))(stages[1], h, t)
        first, _ = back(jax.device_put(dh, devices[0]))  # and back
        totals = [jax.tree.map(jnp.add, a, b) for a, b in zip(totals, (first, second))]
    step = lr / len(X)
    return [p - step * g for stage in zip(stages, totals) for p, g in zip(*stage)]


def blocks(params, X):
    """Dense blocks, relu(X W + b) for each W, b of `params`."""
    for W, b in zip(params[::2], params[1::2]):
        X = jax.nn.relu(X @ W + b)
    return X


def second_loss(params, h, y):
    """The second stage, and half the squared distance, summed over the examples."""
    return ((blocks(params, h) - y) ** 2).sum() / 2


def tensor_parallel(problem):
    """Splitting inside a layer: the first by columns, the second by rows."""
    mesh = Mesh(jax.devices(), ("model",))
    X, y, params, lr = _prepare(problem)
    cut = [PartitionSpec(None, "model"), PartitionSpec("model"),
           PartitionSpec("model", None), PartitionSpec()]
    params = [jax.device_put(p, NamedSharding(mesh, c)) for p, c in zip(params, cut)]
    return jax.jit(update, static_argnums=0)(block_loss, params, X, y, lr)


def block_loss(params, X, y):
    """Dense, ReLU, dense; half the squared distance, mean over the examples."""
    W1, b1, W2, b2 = params
    return ((jax.nn.relu(X @ W1 + b1) @ W2 + b2 - y) ** 2).sum() / 2 / len(X)


def _convolve(X, W):
    return jax.lax.conv_general_dilated(X, W, (1, 1), "VALID")


def _pool(h):
    n, c, height, width = h.shape
    h = h[:, :, : height // 2 * 2, : width // 2 * 2]
    return h.reshape(n, c, height // 2, 2, width // 2, 2).mean((3, 5))


def _prepare(problem):
    params = [problem[f"p{i}"] for i in range(sum(k[0] == "p" for k in problem))]
    params = jax.tree.map(jnp.asarray, params)
    return jnp.asarray(problem["X"]), jnp.asarray(problem["y"]), params, problem["lr"]


STEPS = {"plain": plain, "sharded": sharded, "summed": summed, "pipeline": pipeline,
         "tensor_parallel": tensor_parallel}


def main(step, source, target):
    params = STEPS[step](dict(numpy.load(source)))
    numpy.savez(target, **{f"p{i}": numpy.asarray(p) for i, p in enumerate(params)})


if __name__ == "__main__":
    main(*sys.argv[1:])
