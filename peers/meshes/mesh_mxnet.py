"""Data and tensor parallelism on a mesh of 2 × 2, as in *Data × tensor × pipeline*."""

# %% Dense (48, 192), ReLU, dense (192, 48); 64 examples; a mesh of 2 × 2
import math
import random

import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext import tensor_parallel
from d2l_ext.data_parallel import traffic
from d2l_ext.data_parallel.allreduce import allreduce
from d2l_ext.devices import try_all_devices
from d2l_ext.meshes.mesh import Mesh

npx.set_np()
devices = try_all_devices(4)
draw = random.Random(2).uniform


def numbers(*shape, size=0.25):
    """The same numbers in every framework."""
    values = [draw(-size, size) for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


params = numbers(48, 192), numbers(192), numbers(192, 48), numbers(48)
X, y = numbers(64, 48, size=1), numbers(64, 48, size=1)
mesh = Mesh(devices, data=2, tensor=2)

# %% Rows of the mesh divide the layers, columns sum gradients
rows = mesh.groups("tensor")
parts = [tensor_parallel.split_block(params, row) for row in rows]
gradients = []
with traffic.count(devices) as moved:
    for i, (row, part) in enumerate(zip(rows, parts)):
        own = slice(32 * i, 32 * i + 32)
        Xs, ys = (tensor_parallel.replicate(a[own], row) for a in (X, y))
        outs, hidden = tensor_parallel.forward(Xs, part)
        errors = [(out - t) / len(X) for out, t in zip(outs, ys)]
        gradients.append(tensor_parallel.backward(errors, Xs, hidden, part)[1])
    for column in zip(*gradients):
        for same in zip(*column):
            allreduce(list(same))

# %% What came out
after = [[p - 0.1 * g for p, g in zip(*pair)] for pair in zip(parts[1], gradients[1])]
by_axis = {axis: sum(sent) for axis, sent in mesh.by_axis(moved).items()}
print("bytes by axis:", by_axis)
result = tensor_parallel.join_block(after)
sent = {"all_reduce": sum(moved.sent)}
