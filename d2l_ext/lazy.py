"""Names of a package, brought from its files when they are first asked for.

So `import d2l_ext` needs neither NumPy nor MXNet: the doctor asks it which GPUs can be
used before anything is installed.
"""

import sys
from importlib import import_module
from types import ModuleType


def names(package, **files):
    """A `__getattr__` for `package`. `files`: by file, the names it gives, in one text.

        __getattr__ = names(__name__, choice="try_device try_all_devices")

    Source: PEP 562.
    """
    where = {name: file for file, given in files.items() for name in given.split()}

    def get(name):
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{where[name]}"), name)

    return get


def callable_as(module, package, name):
    """Let `module`, called, be function `name` of `package`, whose name it has.

    `from d2l_ext import train` is a file, and a function of a source document.
    """

    class Callable(ModuleType):
        def __call__(self, *args, **options):
            return getattr(import_module(package), name)(*args, **options)

    sys.modules[module].__class__ = Callable
