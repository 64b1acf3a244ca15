"""LARS in JAX, by hand; the package optax has it, too.

    pip install jax
    python lars_jax.py
"""

# %% Dense (48, 48), 64 examples, two devices
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 2)
mesh = jax.make_mesh((2,), ("batch",), axis_types=(AxisType.Auto,))
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


params = [numbers(48, 48), numbers(48)]
X, y = numbers(64, 48, size=1), numbers(64, 48, size=1)
velocity = [jnp.zeros_like(p) for p in params]


# %% Three steps, each of a share of the layer's length
def loss(params, X, y):
    W, b = params
    return ((X @ W + b - y) ** 2).sum() / 2 / len(X)


def direction(w, g):
    u, norm = g + 0.01 * w, jnp.linalg.norm
    return u * norm(w) / (norm(g) + 0.01 * norm(w)) if w.ndim > 1 else u


@jax.jit
def step(params, velocity, X, y):
    found = map(direction, params, jax.grad(loss)(params, X, y))
    velocity = [0.9 * v + u for v, u in zip(velocity, found)]
    return [p - 0.1 * v for p, v in zip(params, velocity)], velocity


X, y = jax.device_put((X, y), NamedSharding(mesh, P("batch")))
params, velocity = jax.device_put((params, velocity), NamedSharding(mesh, P()))
for _ in range(3):
    params, velocity = step(params, velocity, X, y)

# %% What came out
calls = {"step": 3}
print("biases:", [round(float(x), 4) for x in params[1][:3]], "...")
result = params
