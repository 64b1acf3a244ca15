"""Allreduce as a ring of four devices, as in the chapter *Allreduce*."""

# %% Four devices, which hold 1 to 4, 10 to 40, 100 to 400 …
import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import allreduce, traffic
from d2l_ext.devices import try_all_devices

npx.set_np()
devices = try_all_devices(4)
data = [np.arange(1, 5, ctx=device) * 10**i for i, device in enumerate(devices)]

# %% The ring
with traffic.count(devices) as moved:
    allreduce.allreduce_ring(data)

# %% What came out
print("device 0 has", data[0].astype(int).tolist())
print("bytes sent by each device:", moved.sent)
result, sent = data, {"send": sum(moved.sent)}
