"""GPipe on two devices, in JAX: one program, messages by `ppermute`.

    pip install jax
    python gpipe_jax.py
"""

# %% Four dense layers of 48 units, 64 examples, two devices
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 2)
jax.set_mesh(jax.make_mesh((2,), ("stage",)))
draw = random.Random(2).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


params = [numbers(*shape) for shape in [(48, 48), (48,)] * 4]
X, y = numbers(64, 48, size=1), numbers(64, 48, size=1)


def layers(params, X):
    for W, b in zip(params[::2], params[1::2]):
        X = jax.nn.relu(X @ W + b)
    return X


stacked = [jnp.stack([p, q]) for p, q in zip(params[:4], params[4:])]  # by stage
stacked = jax.device_put(stacked, P("stage"))
X, y = (jax.device_put(a.reshape(4, 16, 48), P()) for a in (X, y))


# %% Four micro-batches through two stages
@jax.shard_map(in_specs=(P("stage"), P(), P()), out_specs=P("stage"), check_vma=False)
def losses(own, X, y):
    own, me = [p[0] for p in own], jax.lax.axis_index("stage")
    arriving, loss = jnp.zeros_like(X[0]), 0.0
    for tick in range(len(X) + 1):  # device 1 works one tick later
        out = layers(own, jnp.where(me == 0, X[min(tick, 3)], arriving))
        if tick < len(X):
            arriving = jax.lax.ppermute(out, "stage", [(0, 1)])
        if tick > 0:
            loss += jnp.where(me == 1, ((out - y[tick - 1]) ** 2).sum() / 2 / 64, 0)
    return loss[None]


@jax.jit
def step(stacked):
    gradients = jax.grad(lambda stacked: losses(stacked, X, y).sum())(stacked)
    return [p - 0.1 * g for p, g in zip(stacked, gradients)]


stacked = step(stacked)

# %% What came out
print("device 0 has", stacked[0].addressable_shards[0].data.shape[0], "stage")
stacked = jax.device_get(stacked)
result = [p[stage] for stage in (0, 1) for p in stacked]
