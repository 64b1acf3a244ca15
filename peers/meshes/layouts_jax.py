"""An MLP whose arrays say where they lie, in JAX: explicit sharding.

    pip install jax
    python layouts_jax.py

Differs, reduce_scatter: the compiler for CPUs sums whole arrays.
Differs, all_reduce: of the sum that is owed, each device then keeps its rows.
Differs, float64: MXNet's `gelu` computes in float32, whatever its input is.
"""

# %% An MLP of two products, 32 rows, four devices
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
jax.set_mesh(jax.make_mesh((4,), ("t",)))
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


ROWS, COLUMNS = P("t", None), P(None, "t")
x = jax.device_put(numbers(32, 16), ROWS)
up = jax.device_put(numbers(16, 64), COLUMNS)
down = jax.device_put(numbers(64, 16), ROWS)


# %% Rows of x, columns of u: an allgather and a reduce-scatter follow
@jax.jit
def mlp(x, up, down):
    u = jax.sharding.reshard(x, P(None, None)) @ up
    a = jax.nn.gelu(u, approximate=False)
    y = jnp.dot(a, down, out_sharding=ROWS)  # a sum is owed: say where it is to lie
    print("u:", jax.typeof(u), " y:", jax.typeof(y))
    return x + y


z = mlp(x, up, down)

# %% What came out
print("z:", jax.typeof(z))
result = [z]
