"""A mixture of experts in JAX.

    pip install jax
    python experts_jax.py

Differs, all_to_all: shapes are fixed, so every expert's places travel, used or not.
"""

# %% Four experts on two devices, 16 tokens of 8 numbers on each
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 2)
jax.set_mesh(jax.make_mesh((2,), ("expert",)))
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


router, X = numbers(8, 4, size=1), numbers(32, 8, size=1)
W1, W2 = numbers(4, 8, 16), numbers(4, 16, 8)
X, W1, W2 = jax.device_put((X, W1, W2), P("expert"))
router = jax.device_put(router, P())


# %% Each token goes to its expert, and comes back
@jax.jit
@jax.shard_map(in_specs=(P(), P("expert"), P("expert"), P("expert")),
               out_specs=P("expert"))
def layer(router, X, W1, W2):
    gates = jax.nn.softmax(X @ router)
    chosen = jax.nn.one_hot(gates.argmax(-1), 4)  # (token, expert)
    slot = (chosen.cumsum(0) * chosen).sum(-1).astype(int) - 1
    place = chosen[:, :, None] * jax.nn.one_hot(slot, 16)[:, None]  # room for all
    sent = jnp.einsum("tes,td->esd", place, X)
    arrived = jax.lax.all_to_all(sent, "expert", 0, 1, tiled=True)
    hidden = jax.nn.relu(jnp.einsum("esd,edh->esh", arrived, W1))
    done = jnp.einsum("esh,ehd->esd", hidden, W2)
    back = jax.lax.all_to_all(done, "expert", 1, 0, tiled=True)
    return jnp.einsum("tes,esd->td", place, back) * gates.max(-1, keepdims=True)


Y = jax.device_get(layer(router, X, W1, W2))

# %% What came out
print("first token:", [round(float(y), 4) for y in Y[0, :3]])
result = [Y]
