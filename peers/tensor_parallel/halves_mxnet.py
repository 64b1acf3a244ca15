"""Reduce-scatter and allgather, as in *Splitting inside a layer*."""

# %% Four devices with four numbers each
import d2l_ext  # first: it prepares MXNet's engine
from mxnet import np, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.devices import try_all_devices
from d2l_ext.tensor_parallel import divided_layers

npx.set_np()
devices = try_all_devices(4)
data = [np.arange(4, ctx=device) + 10 * i for i, device in enumerate(devices)]

# %% A sum in parts, then the whole
with traffic.count(devices) as first:
    parts = divided_layers.reduce_scatter(data)
with traffic.count(devices) as second:
    wholes = divided_layers.allgather(parts)

# %% What came out
print("device 0 has the part", parts[0].tolist(), "of", wholes[0].tolist())
parts, wholes = ([x.as_in_ctx(devices[0]) for x in xs] for xs in (parts, wholes))
result = [np.concatenate(parts), np.stack(wholes)]
sent = {"reduce_scatter": sum(first.sent), "all_gather": sum(second.sent)}
