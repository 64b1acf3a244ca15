"""The trainer behind `python -m d2l_ext.train`.

| file | what it holds | chapter |
|---|---|---|
| `fit` | the training loop, its progress, its profile | the trainer's command |
| `flags` | the flags, and what their text may be | the trainer's command |
| `language` | a decoder on groups of devices: `--network transformer --tensor K` | the trainer's command |
| `networks` | LeNet, MLP and VGG-11 in Gluon | The same step in PyTorch and JAX |
| `parts` | checkpoints in parts, written side by side: `--save-shards` | the trainer's command |
| `preparation` | from the flags to what trains | the trainer's command |
| `replicas` | a network on several devices, of one worker or of several | the trainer's command |
| `sharded` | devices that share one network: `--shard` | the trainer's command |
| `resume` | to go on where a run was stopped | Faults and recovery |
| `stop` | signals that ask a training to end | the trainer's command |
"""  # noqa: E501

from ..lazy import without

# In half of its import MXNet looks for these two, and it can do without: `FeedForward`
# is no estimator of scikit-learn's then, quantization can't calibrate by entropy.
with without("sklearn", "scipy"):
    import mxnet  # noqa: F401
