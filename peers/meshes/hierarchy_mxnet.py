"""An allreduce in two levels, as in the chapter *Two kinds of links*."""

# %% Two hosts of two devices, eight numbers each
import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices
from d2l_ext.meshes import hierarchy

npx.set_np()
devices = try_all_devices(4)
data = [np.arange(8, ctx=device) * 10**i for i, device in enumerate(devices)]

# %% Inside the hosts, between them, inside
with traffic.count(devices) as moved:
    hierarchy.allreduce_hierarchy(data, hosts=2)

# %% What came out
between = sum(n for (i, j), n in moved.pairs.items() if i // 2 != j // 2)
inside = sum(moved.sent) - between
print("device 0 has", data[0].astype(int).tolist())
result = data
sent = {"reduce_scatter": inside // 2, "all_reduce": between, "all_gather": inside // 2}
