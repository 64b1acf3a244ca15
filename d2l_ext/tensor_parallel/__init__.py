"""Tensor parallelism: the weights of a layer divided over devices.

| file | what it holds | chapter |
|---|---|---|
| `dense` | a dense block: cut by columns, then by rows | Tensor parallelism: splitting inside a layer |
| `experts` | routing, capacity, all-to-all; experts on several devices | Experts: mixture of experts and expert parallelism |
| `divided_layers` | attention by heads, the MLP; the embedding and the loss, split by token; reduce-scatter and allgather, and when to use them | A Transformer over its heads: tensor parallelism |
| `transformer` | a decoder whose layers are divided | A Transformer over its heads: tensor parallelism |
| `ring_attention` | attention over chunks of a sequence; keys and values travel around a ring | Long sequences: ring attention, or context parallelism |
"""  # noqa: E501  (a table)

from .. import lazy

__getattr__ = lazy.names(
    __name__,
    dense="column_split row_split replicate split_block join_block bytes_per_device "
    "forward backward",
)
