"""Loss scaling in JAX, by hand.

    pip install jax
    python loss_scaling_jax.py
"""

# %% Sixteen weights; gradients below the range of float16
import math
import random

import jax
from jax import numpy as jnp

jax.config.update("jax_num_cpu_devices", 1)
jax.set_mesh(jax.make_mesh((1,), ("device",)))
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


weights, X = numbers(16), numbers(16, size=1e-5)
scale, good = jnp.float32(2.0**24), 0


# %% A scale that finds itself
@jax.jit
def step(weights, scale, good):
    def scaled(weights):
        product = weights.astype("float16") * X.astype("float16")
        return product.astype("float32").sum() * 1000 * scale

    gradient = jax.grad(scaled)(weights)
    finite = jnp.isfinite(gradient).all()
    weights = jnp.where(finite, weights - 0.1 * gradient / scale, weights)
    good = jnp.where(finite, (good + 1) % 2, 0)
    factor = jnp.where(finite, jnp.where(good == 0, 2, 1), 0.5)
    return weights, scale * factor, good


for _ in range(6):
    weights, scale, good = step(weights, scale, good)

# %% What came out
print("scale:", float(scale))
result = [weights, scale[None]]
