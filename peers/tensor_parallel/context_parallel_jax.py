"""Context parallelism in JAX: only the arrays say so.

    pip install jax
    python context_parallel_jax.py

Differs, send: the compiler makes no ring.
Differs, all_gather: it gathers keys and values, as many bytes as the ring.
Differs, float64: JAX's attention takes its softmax in float32, whatever its inputs are.
"""

# %% Two heads of width 8, 32 positions, four devices
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
mesh = jax.make_mesh((4,), ("sequence",), axis_types=(AxisType.Auto,))
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


Q, K, V = (numbers(2, 32, 8, size=1).swapaxes(0, 1)[None] for _ in "QKV")
cut = NamedSharding(mesh, P(None, "sequence"))  # (batch, position, head, width)

# %% Positions are cut; the attention is one for a single device
Q, K, V = jax.device_put((Q, K, V), cut)
attend = jax.jit(jax.nn.dot_product_attention, static_argnames="is_causal",
                 out_shardings=cut)
out = attend(Q, K, V, is_causal=True)

# %% What came out
out = jax.device_get(out)[0].swapaxes(0, 1)
print("last position of head 0:", [round(float(o), 4) for o in out[0, -1, :3]], "...")
result = [out]
