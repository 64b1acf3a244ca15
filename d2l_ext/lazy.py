"""Names of a package that are brought from its files when somebody asks for them.

So `import d2l_ext` needs neither NumPy nor MXNet: the doctor asks it which GPUs can be
used before anything is installed.
"""

import sys
from importlib import import_module
from types import ModuleType


def names(package, **files):
    """Return a `__getattr__` for `package`, which finds names in its files.

        __getattr__ = names(__name__, choice="describe try_all_devices")

    `files`: by file, the names that it gives, in one text. Source: PEP 562.
    """
    where = {name: file for file, given in files.items() for name in given.split()}

    def get(name):
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{where[name]}"), name)

    return get


def callable_as(module, package, name):
    """Let a call of the module `module` be one of the function `name` of `package`.

        callable_as("d2l_ext.train", "d2l_ext.data_parallel", "train")

    A file and a function of the source documents have one name, and Python gives
    whoever imports that name the file.
    """

    class Callable(ModuleType):
        def __call__(self, *args, **options):
            return getattr(import_module(package), name)(*args, **options)

    sys.modules[module].__class__ = Callable
