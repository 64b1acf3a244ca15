"""ZeRO 3 in JAX: only the arrays say so.

    pip install jax
    python fsdp_jax.py

Differs, all_reduce: XLA for CPUs sums whole gradients, and each device takes its part.
Differs, reduce_scatter: there is none, because whole gradients are summed.
Differs, all_gather: XLA gathers each layer once, and keeps it until backward.
"""

# %% Four dense layers of 48 units, 64 examples, two devices
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 2)
mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
draw = random.Random(2).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


params = [numbers(*shape) for shape in [(48, 48), (48,)] * 4]
X, y = numbers(64, 48, size=1), numbers(64, 48, size=1)


def loss(params, X, y):
    """Half the squared distance, the mean over the examples."""
    for W, b in zip(params[::2], params[1::2]):
        X = jax.nn.relu(X @ W + b)
    return ((X - y) ** 2).sum() / 2 / len(X)

# %% Three steps; each device has half of everything
parts = NamedSharding(mesh, P("data"))


@jax.jit(out_shardings=(parts, parts))
def step(params, velocity, X, y):
    gradients = jax.grad(loss)(params, X, y)
    velocity = [0.875 * v + g for v, g in zip(velocity, gradients)]
    return [p - 0.125 * v for p, v in zip(params, velocity)], velocity


velocity = jax.device_put([jnp.zeros_like(p) for p in params], parts)
params = jax.device_put(params, parts)
X, y = jax.device_put((X, y), parts)  # the batch is cut, too
for _ in range(3):
    params, velocity = step(params, velocity, X, y)

# %% What came out
calls = {"step": 3}
print("largest weight:", round(max(float(abs(p).max()) for p in params), 4))
result = params
