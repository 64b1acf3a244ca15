"""A checkpoint in parts, in JAX: Orbax, a library of its own.

    pip install jax orbax-checkpoint
    python sharded_checkpoint_jax.py
"""

# %% A matrix of 8 × 4, half of it on each device
import math
import random
import tempfile

import jax
import orbax.checkpoint as ocp
from jax import numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 2)
mesh = jax.make_mesh((2,), ("data",))
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return jnp.array(values).reshape(shape)


W = jax.device_put(numbers(8, 4), NamedSharding(mesh, P("data")))
folder = tempfile.TemporaryDirectory()

# %% Two devices write, one reads
with ocp.StandardCheckpointer() as checkpointer:
    checkpointer.save(f"{folder.name}/3", {"W": W})  # in the background
    checkpointer.wait_until_finished()
    one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    wanted = {"W": jax.ShapeDtypeStruct((8, 4), W.dtype, sharding=one)}
    arrays = checkpointer.restore(f"{folder.name}/3", wanted)

# %% What came out
folder.cleanup()
print("first numbers:", [round(float(w), 4) for w in arrays["W"][0, :3]])
result = [arrays["W"]]
