"""The trainer behind `python -m d2l_ext.train`.

| file | what it holds |
|---|---|
| `command` | from the flags to the exit code |
| `flags` | the flags |
| `words` | the types of the flags' values |
| `ways` | the ways of training: the flags, checks and replicas of each |
| `job` | checks the flags together, and describes the job |
| `examples` | a worker's examples and minibatches |
| `workers` | the connection of a worker to the others |
| `preparation` | builds a `Training` from the job's description |
| `fit` | the training loop: signals, progress, profile |
| `replicas` | a network on several devices, of one worker or of several |
| `sharded` | devices that share one network: `--shard` |
| `language` | a decoder on groups of devices: `--network transformer --tensor K` |
| `networks` | LeNet, MLP and VGG-11 in Gluon |
| `resume` | resuming a stopped run |
| `parts` | checkpoints as files, or in parts written side by side: `--save-shards` |

Of this book's packages it imports only `d2l_ext`, whose parts it combines.
"""

import d2l_ext  # noqa: F401  (before mxnet)
