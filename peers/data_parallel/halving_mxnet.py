"""Halving and doubling on four devices, as in the chapter of that name."""

# %% Four devices, which hold 1 to 8, 10 to 80, 100 to 800 …
import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.data_parallel.allreduce import halving
from d2l_ext.devices import try_all_devices

npx.set_np()
devices = try_all_devices(4)
data = [np.arange(1, 9, ctx=device) * 10**i for i, device in enumerate(devices)]

# %% Halve, add, and go back
with traffic.count(devices) as moved:
    halving.allreduce_halving(data)

# %% What came out
print("device 3 has", data[3].astype(int).tolist())
result, sent = data, {"send": sum(moved.sent)}
