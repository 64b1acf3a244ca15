"""The distributed kvstore: workers, and servers that sum.

| file | what it holds | chapter |
|---|---|---|
| `keys` | the calls on each key, recorded; the server that holds it, and where arrays are cut | The store by hand, Roles, keys and shards |
| `ps_log` | a parser for ps-lite's log: nodes that joined, messages | Roles, keys and shards, Launching jobs |
| `dist_train` | the training step of several workers over a store | In step: synchronous data parallelism with a parameter server |
| `staleness` | the age of the weights that a gradient was computed from | Out of step: asynchronous data parallelism with a parameter server |
| `compression` | two bits per number; MXNet's own bytes in memory | Gradient compression |
| `ring` | sums without servers: a ring over sockets or shared memory | Rings between processes: allreduce without servers |
| `ring_links` | a process's two connections in a ring: its messages, failures, proof of the token | Rings between processes: allreduce without servers |
| `local_sgd` | local steps of a worker, and the exchange after them | Exchanging less often: local SGD and DiLoCo |
"""  # noqa: E501  (a table)
