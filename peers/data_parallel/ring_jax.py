"""Allreduce as a ring of four devices, in JAX.

    pip install jax
    python ring_jax.py
"""

# %% Four devices, which hold 1 to 4, 10 to 40, 100 to 400 …
import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
k = 4
jax.set_mesh(jax.make_mesh((k,), ("ring",)))
data = (jnp.arange(1.0, 5) * 10.0 ** jnp.arange(k)[:, None]).reshape(-1)
data = jax.device_put(data, P("ring"))


# %% The ring
@jax.jit
@jax.shard_map(in_specs=P("ring"), out_specs=P("ring"))
def ring(data):
    chunks, me = data.reshape(k, -1), jax.lax.axis_index("ring")
    right = [(i, (i + 1) % k) for i in range(k)]
    for r in range(k - 1):  # reduce-scatter: add what arrives
        arriving = jax.lax.ppermute(chunks[(me - r) % k], "ring", right)
        chunks = chunks.at[(me - 1 - r) % k].add(arriving)
    for r in range(k - 1):  # allgather: copy what arrives
        arriving = jax.lax.ppermute(chunks[(me + 1 - r) % k], "ring", right)
        chunks = chunks.at[(me - r) % k].set(arriving)
    return chunks.reshape(-1)


data = jax.device_get(ring(data)).reshape(k, -1)

# %% What came out
print("device 0 has", data[0].astype(int).tolist())
result = list(data)
