"""Reduce-scatter and allgather in JAX.

    pip install jax
    python halves_jax.py
"""

# %% Four devices with four numbers each
import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
jax.set_mesh(jax.make_mesh((4,), ("device",)))
data = (jnp.arange(4.0) + 10 * jnp.arange(4.0)[:, None]).reshape(-1)
data = jax.device_put(data, P("device"))


# %% A sum in parts, then the whole
@jax.jit
@jax.shard_map(in_specs=P("device"), out_specs=P("device"))
def halves(own):
    part = jax.lax.psum_scatter(own, "device", tiled=True)
    return part, jax.lax.all_gather(part, "device", tiled=True)


parts, wholes = jax.device_get(halves(data))

# %% What came out
print("device 0 has the part", parts[:1].tolist(), "of", wholes[:4].tolist())
result = [parts, wholes.reshape(4, 4)]
