"""Clusters: checkpoints, and agreement among workers.

| file | what it holds | chapter |
|---|---|---|
| `agreement` | settings that must be equal on all workers before they train | Faults and recovery |
| `checkpoint` | one atomic, verified file; the checkpoints of a run, and their lock | Faults and recovery |
| `sharded` | checkpoints of many workers, for any number of workers | Sharded checkpoints and elastic training |
"""  # noqa: E501
