"""Gradient accumulation in JAX: a scan over the pieces.

    pip install jax
    python accumulate_jax.py
"""

# %% Four dense layers of 48 units, 64 examples, two devices
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 2)
jax.set_mesh(jax.make_mesh((2,), ("batch",)))
draw = random.Random(2).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


params = [numbers(*shape) for shape in [(48, 48), (48,)] * 4]
X, y = numbers(64, 48, size=1), numbers(64, 48, size=1)


def layers(params, X):
    for W, b in zip(params[::2], params[1::2]):
        X = jax.nn.relu(X @ W + b)
    return X


def loss(params, X, y):
    """Half the squared distance, summed."""
    return ((layers(params, X) - y) ** 2).sum() / 2


X, y = jax.device_put((X, y), P("batch"))


# %% Four pieces on each device, one sum at the end
@jax.jit
@jax.shard_map(in_specs=(P(), P("batch"), P("batch")), out_specs=P(), check_vma=False)
def step(params, X, y):
    def add(total, piece):
        own = jax.grad(loss)(params, *piece)
        return [t + g for t, g in zip(total, own)], None

    pieces = X.reshape(4, 8, 48), y.reshape(4, 8, 48)
    total, _ = jax.lax.scan(add, [jnp.zeros_like(p) for p in params], pieces)
    total = jax.lax.psum(total, "batch")
    return [p - 0.1 * g / 64 for p, g in zip(params, total)]


params = step(jax.device_put(params, P()), X, y)

# %% What came out
print("largest bias:", round(max(float(abs(b).max()) for b in params[1::2]), 4))
result = params
