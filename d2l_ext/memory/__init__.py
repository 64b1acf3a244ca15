"""Memory: where it goes, how a step needs less, and replicas that share it.

| file | what it holds | chapter |
|---|---|---|
| `accounting` | bytes of a step, from numbers of parameters and from shapes | Where the memory goes: states, activations, recomputation |
| `recompute` | forward again in backward, segment by segment | Where the memory goes: states, activations, recomputation |
| `accumulate` | the gradient of a batch, from pieces of it | Gradient accumulation and mixed precision |
| `loss_scaling` | gradients in half precision, and the scale that saves them | Gradient accumulation and mixed precision |
| `shards` | replicas that share weights, gradients and states: ZeRO 1, 2, 3 | Sharded data parallelism: ZeRO 1, 2, 3 and FSDP |
"""  # noqa: E501  (a table)

from .. import lazy

__getattr__ = lazy.names(
    __name__, shards="STAGES Shards bytes_held bytes_sent state_bytes"
)
