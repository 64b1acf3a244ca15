"""Attention over its heads in JAX: only the weights say so.

    pip install jax
    python heads_jax.py

Differs, float64: JAX's attention takes its softmax in float32, whatever its inputs are.
"""

# %% Attention with 4 heads of width 12, 16 positions, two devices
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 2)
mesh = jax.make_mesh((2,), ("head",), axis_types=(AxisType.Auto,))
draw = random.Random(2).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


x, qkv, out = numbers(16, 48, size=1), numbers(48, 144), numbers(48, 48)


# %% Two heads on each device, one sum at the end
@jax.jit
def attention(x, qkv, out):
    heads = (x @ qkv).reshape(1, 16, 4, 3, 12)
    queries, keys, values = jnp.moveaxis(heads, 3, 0)
    mixed = jax.nn.dot_product_attention(queries, keys, values, is_causal=True)
    return mixed.reshape(16, 48) @ out


cuts = P(), P(None, "head"), P("head", None)
shardings = [NamedSharding(mesh, cut) for cut in cuts]
y = attention(*map(jax.device_put, (x, qkv, out), shardings))

# %% What came out
print("first position:", [round(float(v), 4) for v in y[0, :3]], "...")
result = [y]
