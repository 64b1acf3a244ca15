"""Devices and time.

| file | what it holds | chapter |
|---|---|---|
| `choice` | GPUs when there are enough, else CPU contexts | Devices |
| `gpus` | which GPUs MXNet can use, as NVIDIA's driver knows them; the others are hidden from it | the doctor |
| `storage` | the memory of each device's arrays | Tensor parallelism: splitting inside a layer |
| `timeline` | what each device did, and when | Devices |
"""  # noqa: E501  (a table)

from .. import lazy

__getattr__ = lazy.names(
    __name__, choice="VARIABLE describe parse_device try_all_devices"
)
