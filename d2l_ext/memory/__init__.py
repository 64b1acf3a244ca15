"""Memory: where it goes, and replicas that share it.

| file | what it holds | chapter |
|---|---|---|
| `shards` | replicas that share weights, gradients and states: ZeRO 1, 2, 3 | Sharded data parallelism: ZeRO 1, 2, 3 and FSDP |
"""  # noqa: E501  (a table)

from .. import lazy

__getattr__ = lazy.names(
    __name__, shards="STAGES Shards bytes_held bytes_sent state_bytes"
)
