"""An allreduce in two levels, in JAX.

    pip install jax
    python hierarchy_jax.py
"""

# %% Two hosts of two devices, eight numbers each
import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
jax.set_mesh(jax.make_mesh((2, 2), ("between", "inside")))
data = (jnp.arange(8.0) * 10.0 ** jnp.arange(4)[:, None]).reshape(-1)
data = jax.device_put(data, P(("between", "inside")))


# %% Inside the hosts, between them, inside
@jax.jit
@jax.shard_map(in_specs=P(("between", "inside")), out_specs=P(("between", "inside")))
def allreduce(own):
    part = jax.lax.psum_scatter(own, "inside", tiled=True)
    part = jax.lax.psum(part, "between")
    return jax.lax.all_gather(part, "inside", tiled=True)


data = jax.device_get(allreduce(data))

# %% What came out
print("device 0 has", data[:8].astype(int).tolist())
result = list(data.reshape(4, 8))
