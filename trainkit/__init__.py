"""The trainer behind `python -m d2l_ext.train`.

| file | what it holds |
|---|---|
| `command` | from the flags to the exit code |
| `flags` | the flags |
| `words` | what the text of a flag may be |
| `ways` | the ways of training: what each adds, refuses and builds |
| `preparation` | from the flags to what trains |
| `fit` | the training loop, its end by a signal, its progress, its profile |
| `replicas` | a network on several devices, of one worker or of several |
| `sharded` | devices that share one network: `--shard` |
| `language` | a decoder on groups of devices: `--network transformer --tensor K` |
| `networks` | LeNet, MLP and VGG-11 in Gluon |
| `resume` | to go on where a run was stopped |
| `parts` | checkpoints in parts, written side by side: `--save-shards` |

Of this book's packages it imports `d2l_ext` alone, whose parts it puts together.
"""

import sys
from contextlib import contextmanager

import d2l_ext  # noqa: F401  (before mxnet)


@contextmanager
def without(*packages):
    """Make `import` of these packages fail, as if they were not installed."""
    hidden = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def load_mxnet():
    """Import MXNet in half the time: for the other half it looks for two packages that
    it can do without. `FeedForward` is no estimator of scikit-learn's then, and
    quantization can't calibrate by entropy."""
    with without("sklearn", "scipy"):
        import mxnet  # noqa: F401
