"""Data sets, and minibatches of them."""

from .. import lazy

__getattr__ = lazy.names(
    __name__, sets="DATASET DATA_DIR NAMES Dataset load_arrays load_data"
)
