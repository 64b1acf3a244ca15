"""Clipping by the global norm in JAX, by hand; the package optax has it, too.

    pip install jax
    python global_norm_jax.py

Differs, all_reduce: three numbers travel, one for each array that is cut, in float32;
in the chapter one for all of them, in float64.
"""

# %% The gradient of a tensor-parallel group: columns of W1, rows of W2; b2 is whole
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 2)
mesh = jax.make_mesh((2,), ("model",), axis_types=(AxisType.Auto,))
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


gradients = numbers(196, 32), numbers(32), numbers(32, 10), numbers(10)
cuts = P(None, "model"), P("model"), P("model", None), P()
gradients = [jax.device_put(g, NamedSharding(mesh, cut))
             for g, cut in zip(gradients, cuts)]


# %% Squares add up; what two devices hold counts once
@jax.jit
def clip(gradients, limit):
    norm = jnp.sqrt(sum(jnp.square(g).sum() for g in gradients))
    return norm, [g * jnp.minimum(1, limit / norm) for g in gradients]


norm, gradients = clip(gradients, 0.5)

# %% What came out
print("norm before:", round(float(norm), 4))
result = [norm, *gradients]
