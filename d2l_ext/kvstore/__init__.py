"""The distributed kvstore: workers, and servers that add up.

| file | what it holds | chapter |
|---|---|---|
| `keys` | what a program asks of each key, written down; which server holds it, and where arrays are cut | The store by hand, Roles, keys and shards |
| `ps_log` | the log of ps-lite, read back: who joined, each message | Roles, keys and shards, Launching jobs |
| `dist_train` | the training step over a store, by several workers | In step: synchronous data parallelism with a parameter server |
| `staleness` | how old the weights are that a gradient is added to | Out of step: asynchronous data parallelism with a parameter server |
| `compression` | two bits for a number; MXNet's own bytes in memory | Gradient compression |
| `ring` | sums without servers: a ring over sockets, or through memory | Rings between processes: allreduce without servers |
| `local_sgd` | steps that a worker takes alone, and the exchange after them | Exchanging less often: local SGD and DiLoCo |
"""  # noqa: E501  (a table)
