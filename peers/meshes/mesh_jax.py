"""Data and tensor parallelism on a mesh of 2 × 2, in JAX.

    pip install jax
    python mesh_jax.py
"""

# %% Dense (48, 192), ReLU, dense (192, 48); 64 examples; a mesh of 2 × 2
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
mesh = jax.make_mesh((2, 2), ("data", "tensor"), axis_types=(AxisType.Auto,) * 2)
draw = random.Random(2).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


params = numbers(48, 192), numbers(192), numbers(192, 48), numbers(48)
X, y = numbers(64, 48, size=1), numbers(64, 48, size=1)


# %% Rows of the mesh divide the layers, columns sum gradients
@jax.jit
def step(params, X, y):
    def loss(params, X):
        W1, b1, W2, b2 = params
        out = jax.nn.relu(X @ W1 + b1) @ W2 + b2
        return ((out - y) ** 2).sum() / 2 / len(X)

    gradients, dX = jax.grad(loss, (0, 1))(params, X)
    return [p - 0.1 * g for p, g in zip(params, gradients)], dX


cuts = P(None, "tensor"), P("tensor"), P("tensor", None), P()
params = [jax.device_put(p, NamedSharding(mesh, c)) for p, c in zip(params, cuts)]
X, y = jax.device_put((X, y), NamedSharding(mesh, P("data")))
params, dX = step(params, X, y)

# %% What came out
print("device 0 holds", [p.addressable_shards[0].data.shape for p in params])
result = params
