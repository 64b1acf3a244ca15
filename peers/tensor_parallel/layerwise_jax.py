"""A dense block divided inside its layers, in JAX: only the arrays say so.

    pip install jax
    python layerwise_jax.py
"""

# %% Dense (48, 192), ReLU, dense (192, 48); 64 examples; two devices
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 2)
mesh = jax.make_mesh((2,), ("model",), axis_types=(AxisType.Auto,))
draw = random.Random(0).uniform


def numbers(*shape, low=-0.1, high=0.1):
    """The same numbers in every framework."""
    return jnp.array([draw(low, high) for _ in range(math.prod(shape))]).reshape(shape)


params = numbers(48, 192), numbers(192), numbers(192, 48), numbers(48)
X, y = (numbers(64, 48, low=-1, high=1) for _ in "Xy")


# %% Columns, then rows: the compiler adds one sum forward, one backward
def loss(params, X):
    W1, b1, W2, b2 = params
    out = jax.nn.relu(X @ W1 + b1) @ W2 + b2
    return ((out - y) ** 2).sum() / 2 / len(X)


@jax.jit
def step(params, X):
    gradients, dX = jax.grad(loss, (0, 1))(params, X)
    return [p - 0.1 * g for p, g in zip(params, gradients)], dX


cut = P(None, "model"), P("model"), P("model", None), P()
params = [jax.device_put(p, NamedSharding(mesh, c)) for p, c in zip(params, cut)]
params, dX = step(params, jax.device_put(X, NamedSharding(mesh, P())))

# %% What came out
print("device 0 holds", [p.addressable_shards[0].data.shape for p in params])
result = [*params, dX]
