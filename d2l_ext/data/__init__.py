"""Data sets, and minibatches of them.

| file | what it holds | chapter |
|---|---|---|
| `download` | verified files from several mirrors | the trainer's command |
| `formats` | verified readers of MNIST's and CIFAR-10's files | the trainer's command |
| `sets` | the data sets by name, as arrays and as minibatches, divided among workers | Data parallelism from scratch, In step: synchronous data parallelism with a parameter server |
| `text` | characters as numbers, and minibatches of them | The LSTM as a pipeline: pipeline parallelism over time |
"""  # noqa: E501

from .. import lazy

__getattr__ = lazy.names(
    __name__, sets="DATASET DATA_DIR NAMES Dataset load_arrays load_data"
)
