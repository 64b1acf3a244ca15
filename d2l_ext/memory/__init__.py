"""Memory: where it goes, how a step needs less, and replicas that share it.

| file | what it holds | chapter |
|---|---|---|
| `activations` | their bytes; fewer at a time: pieces of a batch, segments of the layers | Where the memory goes: states, activations, recomputation, Gradient accumulation and mixed precision |
| `loss_scaling` | gradients in half precision, and the scale that saves them | Gradient accumulation and mixed precision |
| `shards` | bytes that stay; replicas that share weights, gradients and states: ZeRO 1, 2, 3 | Where the memory goes: states, activations, recomputation, Sharded data parallelism: ZeRO 1, 2, 3 and FSDP |
"""  # noqa: E501  (a table)

from .. import lazy

__getattr__ = lazy.names(
    __name__, shards="STAGES Shards bytes_held bytes_sent state_bytes"
)
