"""Memory: where it goes, how a step needs less, and replicas that share it.

| file | what it holds | chapter |
|---|---|---|
| `activations` | their bytes, and how to hold fewer at a time: pieces of a batch, segments of layers | Where the memory goes: states, activations, recomputation, Gradient accumulation and mixed precision |
| `loss_scaling` | gradients in half precision, and the scale that preserves them | Gradient accumulation and mixed precision |
| `shards` | persistent bytes; replicas that divide weights, gradients and states: ZeRO 1, 2, 3 | Where the memory goes: states, activations, recomputation, Sharded data parallelism: ZeRO 1, 2, 3 and FSDP |
"""  # noqa: E501  (a table)

from .. import lazy

__getattr__ = lazy.names(
    __name__, shards="STAGES Shards bytes_held bytes_sent state_bytes"
)
