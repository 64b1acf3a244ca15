"""Recomputation in JAX.

    pip install jax
    python recompute_jax.py
"""

# %% Four dense layers of 48 units, 64 examples, one device
import math
import random

import jax
from jax import numpy as jnp

jax.config.update("jax_num_cpu_devices", 1)
jax.set_mesh(jax.make_mesh((1,), ("device",)))
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

# %% Two segments of two layers: only their inputs are kept
segment = jax.checkpoint(layers)


@jax.jit
@jax.grad
def gradients(params):
    out = segment(params[4:], segment(params[:4], X))
    return ((out - y) ** 2).sum() / 2


found = gradients(params)

# %% What came out
print("first gradients:", [round(float(g), 4) for g in found[0][0, :3]])
result = found
