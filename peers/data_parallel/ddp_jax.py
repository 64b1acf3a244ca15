"""A step of data parallelism in JAX, its sum left to the compiler.

    pip install jax
    python ddp_jax.py
"""

# %% LeNet, 64 images, two devices
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

SHAPES = ((20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,),
          (800, 128), (128,), (128, 10), (10,))
jax.config.update("jax_num_cpu_devices", 2)
mesh = jax.make_mesh((2,), ("batch",), axis_types=(AxisType.Auto,))
draw = random.Random(1).uniform


def numbers(*shape, low=-0.1, high=0.1):
    """The same numbers in every framework."""
    return jnp.array([draw(low, high) for _ in range(math.prod(shape))]).reshape(shape)


def pool(h):
    """Means over 2 x 2."""
    n, c, height, width = h.shape
    h = h[:, :, : height // 2 * 2, : width // 2 * 2]
    return h.reshape(n, c, height // 2, 2, width // 2, 2).mean((3, 5))


def lenet(X, W1, b1, W2, b2, W3, b3, W4, b4):
    """Scores of ten classes for images X, (n, 1, 28, 28)."""
    for W, b in ((W1, b1), (W2, b2)):
        X = jax.lax.conv_general_dilated(X, W, (1, 1), "VALID")
        X = pool(jax.nn.relu(X + b[:, None, None]))
    return jax.nn.relu(X.reshape(len(X), -1) @ W3 + b3) @ W4 + b4


def mean_loss(params, X, y):
    """Cross-entropy, the mean over the examples."""
    scores = jax.nn.log_softmax(lenet(X, *params))
    return -jnp.take_along_axis(scores, y[:, None], 1).mean()


params = [numbers(*shape) for shape in SHAPES]
X, y = numbers(64, 1, 28, 28, low=0, high=1), jnp.arange(64) % 10


# %% The step: the batch is cut, the weights are not, so the compiler adds the sum
@jax.jit
def step(params, X, y):
    gradients = jax.grad(mean_loss)(params, X, y)
    return [p - 0.1 * g for p, g in zip(params, gradients)]


X, y = (jax.device_put(a, NamedSharding(mesh, P("batch"))) for a in (X, y))
params = step(jax.device_put(params, NamedSharding(mesh, P())), X, y)

# %% What came out
print("biases of the scores:", [round(float(b), 3) for b in params[7][:4]], "...")
result = params
