"""Clusters: checkpoints, and what workers agree on.

| file | what it holds | chapter |
|---|---|---|
| `agreement` | what all workers must have alike before they train | Faults and recovery |
| `checkpoint` | one file, whole or not there, read with care; those of a run, and their lock | Faults and recovery |
| `sharded` | checkpoints of many workers, for any number of workers | Sharded checkpoints and elastic training |
"""  # noqa: E501
