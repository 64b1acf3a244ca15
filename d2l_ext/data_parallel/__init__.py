"""Data parallelism: a replica per device, one sum of gradients per step."""

import sys
from types import ModuleType

from .. import lazy

__getattr__ = lazy.names(
    __name__, step="History evaluate get_params split_batch train train_batch"
)


class _Part(ModuleType):
    """What is put in the place of a name here takes its place in the step as well.

        d2l_ext.data_parallel.allreduce = mine
    """

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        step = sys.modules.get(f"{__name__}.step")
        if hasattr(step, name):
            _own.setdefault(name, getattr(step, name))
            # A module of this part that is put back stands for its function.
            module = isinstance(value, ModuleType)
            setattr(step, name, getattr(value, name) if module else value)

    def __delattr__(self, name):
        super().__delattr__(name)
        if name in _own:
            setattr(sys.modules[f"{__name__}.step"], name, _own.pop(name))


_own = {}
sys.modules[__name__].__class__ = _Part
