"""Loss scaling in JAX, by hand.

    pip install jax
    python loss_scaling_jax.py
"""

# %% Sixteen weights at zero; eight of their gradients are too small for float16
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


weights = jnp.zeros(16)
X = jnp.concatenate([numbers(8, size=0.01), numbers(8, size=1e-8)])
scale, good = jnp.array(2.0**24), 0


# %% A scale that adjusts itself
@jax.jit
def step(weights, scale, good):
    def scaled(weights):
        half = weights.astype("float16")
        return (half.astype(X.dtype) * X).sum() * scale

    gradient = jax.grad(scaled)(weights)
    finite = jnp.isfinite(gradient).all()
    weights = jnp.where(finite, weights - 0.1 * gradient / scale, weights)
    good = jnp.where(finite, (good + 1) % 2, 0)
    factor = jnp.where(finite, jnp.where(good == 0, 2, 1), 0.5)
    return weights, scale * factor, good


scales = []
for _ in range(6):
    scales.append(float(scale))
    weights, scale, good = step(weights, scale, good)

# %% What came out
print("scale of each step: 2 to the", [round(math.log2(s)) for s in scales])
print(f"last weight: {float(weights[-1]):.2e}")
result = [weights[:8], weights[8:], jnp.array(scales)]
