"""The sum on every device, in JAX.

    pip install jax
    python allreduce_jax.py
"""

# %% Four devices, which hold ones, twos, threes and fours
import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
jax.set_mesh(jax.make_mesh((4,), ("device",)))
data = jax.device_put(jnp.repeat(jnp.arange(1.0, 5), 4), P("device"))


# %% The sum; XLA, or NCCL on GPUs, chooses the way
@jax.jit
@jax.shard_map(in_specs=P("device"), out_specs=P())
def allreduce(own):
    return jax.lax.psum(own, "device")


data = allreduce(data)

# %% What came out
print("each device has", data.tolist())
result = [data]
