"""All-to-all attention in JAX.

    pip install jax
    python ulysses_jax.py

Differs, float64: JAX's attention takes its softmax in float32, whatever its inputs are.
"""

# %% Eight heads of width 16, 32 positions, four devices
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
jax.set_mesh(jax.make_mesh((4,), ("seq",)))
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


Q, K, V = (jax.device_put(numbers(1, 32, 8, 16, size=1), P(None, "seq")) for _ in "QKV")


# %% Positions are cut outside of attention, heads inside
@jax.jit
@jax.shard_map(in_specs=P(None, "seq"), out_specs=P(None, "seq"))
def attention(Q, K, V):
    def by_heads(x):  # (1, 8, 8, 16) to (1, 32, 2, 16): batch, positions, heads, width
        return jax.lax.all_to_all(x, "seq", split_axis=2, concat_axis=1, tiled=True)

    out = jax.nn.dot_product_attention(*map(by_heads, (Q, K, V)))
    return jax.lax.all_to_all(out, "seq", split_axis=1, concat_axis=2, tiled=True)


out = jax.device_get(attention(Q, K, V))[0]

# %% What came out
print("first position of head 0:", [round(float(o), 4) for o in out[0, 0, :3]], "...")
result = [out]
