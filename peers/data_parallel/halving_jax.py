"""Halving and doubling on four devices, in JAX.

    pip install jax
    python halving_jax.py
"""

# %% Four devices, which hold 1 to 8, 10 to 80, 100 to 800 …
import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
jax.set_mesh(jax.make_mesh((4,), ("device",)))
k = 4
data = (jnp.arange(1.0, 9) * 10.0 ** jnp.arange(k)[:, None]).reshape(-1)
data = jax.device_put(data, P("device"))


# %% Halve, add, and go back
def swap(give, d):
    return jax.lax.ppermute(give, "device", [(i, i ^ d) for i in range(k)])


@jax.jit
@jax.shard_map(in_specs=P("device"), out_specs=P("device"))
def allreduce(own):
    me = jax.lax.axis_index("device")
    for d in (1, 2):  # keep one half, give the other to the partner
        low, high = jnp.split(own, 2)
        own = jnp.where(me & d, high, low) + swap(jnp.where(me & d, low, high), d)
    for d in (2, 1):  # the same way back, with sums
        other = swap(own, d)
        pair = jnp.where(me & d, other, own), jnp.where(me & d, own, other)
        own = jnp.concatenate(pair)
    return own


data = jax.device_get(allreduce(data)).reshape(k, -1)

# %% What came out
print("device 3 has", data[3].astype(int).tolist())
result = list(data)
