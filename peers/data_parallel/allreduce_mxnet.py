"""The sum on every device, as in the chapter *Allreduce: naive, tree, ring*."""

# %% Four devices, which hold ones, twos, threes and fours
import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import allreduce, traffic
from d2l_ext.devices import try_all_devices

npx.set_np()
devices = try_all_devices(4)
data = [np.ones(4, ctx=device) * (i + 1) for i, device in enumerate(devices)]

# %% The sum
with traffic.count(devices) as moved:
    allreduce.allreduce(data)

# %% What came out
print("device 3 has", data[3].tolist())
result, sent = [data[0]], {"all_reduce": sum(moved.sent)}
