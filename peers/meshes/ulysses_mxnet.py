"""All-to-all attention, as in the chapter *Say where it lies*."""

# %% Eight heads of width 16, 32 positions, four devices
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices
from d2l_ext.meshes.compiled import Compiled
from d2l_ext.meshes.compiler import Plan, program
from d2l_ext.meshes.mesh import Mesh

npx.set_np()
draw = random.Random(0).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


given = {name: numbers(1, 32, 8, 16, size=1).asnumpy() for name in "qkv"}
shapes = {name: x.shape for name, x in given.items()}
mesh = Mesh(try_all_devices(4), seq=4)

# %% Positions are cut outside of attention, heads inside
ATTENTION = """
    dots = einsum bthk,bshk->bhts q k
    size = times:0.25 bhts->bhts dots
    p    = softmax bhts->bhts size
    mix  = einsum bhts,bshk->bthk p v
    out  = times:1 bthk->bthk mix
"""
where = {**dict.fromkeys("qkv", ". seq . ."), "dots": ". seq . .",
         "out": ". seq . ."}
run = Compiled(Plan(program(ATTENTION), shapes, mesh.sizes, where), mesh)
with traffic.count(mesh.devices) as moved:
    run.forward(given)

# %% What came out
out = run.join(run.plan.out)[0]
print("first position of head 0:", out[0, 0, :3].round(4).tolist(), "...")
result, sent = [out], {"all_to_all": sum(moved.sent)}
