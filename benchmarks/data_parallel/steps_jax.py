"""The same training step in JAX, jitted, on one or two host devices.

    steps_jax jax-1 FILE.npz   one host device
    steps_jax jax-2 FILE.npz   two, the batch sharded between them

How many cores it may use is decided outside, by the cores of the process.
Images are (n, height, width, channels) here, the layout in which XLA convolves
fastest on a CPU. The shards lie on their devices before the clock starts.
"""

import os
import sys

devices = int(sys.argv[1].split("-")[1]) if __name__ == "__main__" else 1
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
if devices > 1:  # one thread for each: two pools of two would share the cores
    os.environ["XLA_FLAGS"] += " --xla_cpu_multi_thread_eigen=false"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jaxlib
import numpy
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from benchmarks.worker import serve


def lenet(params, X):
    """Return the scores of ten classes, (n, 10), for `X`, (n, 28, 28, 1)."""
    W1, b1, W2, b2, W3, b3, W4, b4 = params
    h = _pool(jax.nn.relu(_convolve(X, W1) + b1))
    h = _pool(jax.nn.relu(_convolve(h, W2) + b2))
    h = h.transpose(0, 3, 1, 2).reshape(len(h), -1)  # the text's order of the 800
    return jax.nn.relu(h @ W3 + b3) @ W4 + b4


def _convolve(X, W):
    return jax.lax.conv_general_dilated(
        X, W, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _pool(h):
    n, height, width, c = h.shape
    h = h[:, : height // 2 * 2, : width // 2 * 2]
    return h.reshape(n, height // 2, 2, width // 2, 2, c).mean((2, 4))


def mean_loss(params, X, y):
    """Return the cross-entropy of the softmax, mean over the full minibatch."""
    scores = jax.nn.log_softmax(lenet(params, X))
    return -jnp.mean(jnp.take_along_axis(scores, y[:, None], 1))


class Sharded:
    """One jitted step; XLA inserts the sum of the gradients."""

    def __init__(self, problem):
        mesh = Mesh(numpy.array(jax.devices()), ("batch",))
        replicated = NamedSharding(mesh, PartitionSpec())
        sharded = NamedSharding(mesh, PartitionSpec("batch"))
        lr = float(problem["lr"])

        def update(params, X, y):
            gradients = jax.grad(mean_loss)(params, X, y)
            return [p - lr * g for p, g in zip(params, gradients)]

        self.update = jax.jit(update, donate_argnums=0, out_shardings=replicated)
        self.mean_loss = jax.jit(mean_loss)
        params = [problem[f"p{i}"] for i in range(8)]
        params = [p.transpose(2, 3, 1, 0) if p.ndim == 4 else p for p in params]
        self.params = jax.device_put(params, replicated)
        self.X = jax.device_put(problem["X"].transpose(0, 2, 3, 1), sharded)
        self.y = jax.device_put(problem["y"], sharded)
        self.about = {"jax": jax.__version__, "jaxlib": jaxlib.__version__,
                      "numpy": numpy.__version__, "python": sys.version.split()[0],
                      "devices": str(jax.devices()),
                      "XLA_FLAGS": os.environ["XLA_FLAGS"]}

    def step(self):
        self.params = self.update(self.params, self.X, self.y)
        jax.block_until_ready(self.params)

    def loss(self):
        return float(self.mean_loss(self.params, self.X, self.y))


if __name__ == "__main__":
    serve(Sharded(numpy.load(sys.argv[2])))
