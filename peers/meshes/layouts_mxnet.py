"""An MLP whose arrays say where they lie, as in the chapter *Say where it lies*."""

# %% An MLP of two products, 32 rows, four devices
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


shapes = {"x": (32, 16), "up": (16, 64), "down": (64, 16)}
given = {name: numbers(*shape).asnumpy() for name, shape in shapes.items()}
mesh = Mesh(try_all_devices(4), t=4)

# %% Rows of x, columns of u: an allgather and a reduce-scatter follow
MLP = """
    u = einsum nd,df->nf x up
    a = gelu   nf->nf    u
    y = einsum nf,fd->nd a down
    z = add    nd,nd->nd x y
"""
where = {"x": "t . -> . .", "up": ". t", "down": "t .", "z": "t ."}
run = Compiled(Plan(program(MLP), shapes, mesh.sizes, where), mesh)
with traffic.count(mesh.devices) as moved:
    run.forward(given)

# %% What came out
for name in "uyz":
    print(f"{name}:", run.plan.values[name][0].layout)
gather = 3 * given["x"].nbytes  # each part, to three others
result = [run.join(run.plan.out)]
sent = {"all_gather": gather, "reduce_scatter": sum(moved.sent) - gather}
