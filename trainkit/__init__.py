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

import sys
from contextlib import contextmanager

import d2l_ext  # noqa: F401  (before mxnet)


@contextmanager
def without(*packages):
    """Make `import` of these packages fail, unless they are imported already."""
    hidden = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def load_mxnet():
    """Import MXNet in half the time, by hiding two optional packages from it.

    Without them, `FeedForward` is not an estimator of scikit-learn, quantization cannot
    calibrate by entropy, and sparse arrays cannot be made from SciPy's.
    """
    with without("sklearn", "scipy"):
        import mxnet  # noqa: F401
