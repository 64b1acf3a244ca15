"""DiLoCo in JAX.

    pip install jax
    python local_sgd_jax.py
"""

# %% A layer of 8 units, two workers with 16 examples each
import math
import random

import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 2)
jax.set_mesh(jax.make_mesh((2,), ("worker",)))
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


W, X, y = numbers(8, 8), numbers(32, 8, size=1), numbers(32, 8, size=1)
X, y = (jnp.concatenate([a[0::2], a[1::2]]) for a in (X, y))  # a worker after the other
X, y = jax.device_put((X, y), P("worker"))


def loss(W, X, y):
    return ((X @ W - y) ** 2).sum() / 2 / len(X)


# %% Four steps alone, then Nesterov along the mean drift; twice
@jax.jit
@jax.shard_map(in_specs=(P(), P("worker"), P("worker")), out_specs=P(), check_vma=False)
def train(start, X, y):
    velocity = jnp.zeros_like(start)
    for _ in range(2):
        W = start
        for _ in range(4):
            W = W - 0.5 * jax.grad(loss)(W, X, y)
        drift = jax.lax.pmean(start - W, "worker")
        velocity = 0.9 * velocity + drift
        start = start - 0.7 * (drift + 0.9 * velocity)
    return start


W = train(jax.device_put(W, P()), X, y)

# %% What came out
print("first weights:", [round(float(w), 4) for w in jax.device_get(W)[0, :3]])
result = [W, W]
