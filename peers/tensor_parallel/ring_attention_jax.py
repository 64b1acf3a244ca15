"""Ring attention in JAX.

    pip install jax
    python ring_attention_jax.py
"""

# %% Two heads of width 8, 32 positions, four devices
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
jax.set_mesh(jax.make_mesh((4,), ("ring",)))
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


k = 4
Q, K, V = (jax.device_put(numbers(2, 32, 8, size=1), P(None, "ring")) for _ in "QKV")


# %% Queries stay, keys and values go around
@jax.jit
@jax.shard_map(in_specs=P(None, "ring"), out_specs=P(None, "ring"), check_vma=False)
def attention(Q, K, V):
    me, place = jax.lax.axis_index("ring"), jnp.arange(8)
    top, total, out = jnp.full((2, 8, 1), -jnp.inf), 0, 0
    for r in range(k):
        owner = (me - r) % k  # whose keys and values are here
        later = place + 8 * owner > place[:, None] + 8 * me
        scores = jnp.where(later, -jnp.inf, Q @ K.mT / 8**0.5)
        new = jnp.maximum(top, scores.max(-1, keepdims=True))
        p, old = jnp.exp(scores - new), jnp.exp(top - new)
        total, out = total * old + p.sum(-1, keepdims=True), out * old + p @ V
        top = new
        if r < k - 1:
            right = [(i, (i + 1) % k) for i in range(k)]
            K, V = jax.lax.ppermute((K, V), "ring", right)
    return out / total


out = jax.device_get(attention(Q, K, V))

# %% What came out
print("last position of head 0:", [round(float(o), 4) for o in out[0, -1, :3]], "...")
result = [out]
