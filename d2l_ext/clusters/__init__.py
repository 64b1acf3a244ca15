"""Clusters: checkpoints, and what workers agree on.

| file | what it holds | chapter |
|---|---|---|
| `agreement` | what all workers must have alike before they train | Faults and recovery |
| `checkpoint` | the checkpoints of a run, the lock beside them | Faults and recovery |
| `checkpoint_file` | one checkpoint: whole or not there, and read with care | Faults and recovery |
| `sharded` | checkpoints of many workers, for any number of workers | Sharded checkpoints and elastic training |
"""  # noqa: E501
