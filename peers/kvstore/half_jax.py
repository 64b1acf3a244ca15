"""Gradients that travel in 16 bits, in JAX: cast before the sum.

    pip install jax
    python half_jax.py
"""

# %% Dense (48, 48), 64 examples, two devices
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 2)
jax.set_mesh(jax.make_mesh((2,), ("batch",)))
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


W, X, y = numbers(48, 48), numbers(64, 48, size=1), numbers(64, 48, size=1)
X, y = jax.device_put((X, y), P("batch"))


def loss(W, X, y):
    return ((X @ W - y) ** 2).sum() / 2 / len(X)


# %% Halve, send as float16, and add
@jax.jit
@jax.shard_map(in_specs=(P(), P("batch"), P("batch")), out_specs=P(), check_vma=False)
def step(W, X, y):
    half = jax.grad(loss)(W, X, y).astype("float16") / 2
    return W - 0.1 * jax.lax.psum(half, "batch").astype(W.dtype)


W = step(jax.device_put(W, P()), X, y)

# %% What came out
print("first weights:", [round(float(w), 4) for w in jax.device_get(W)[0, :3]])
result = [W, W]
