"""Lazy imports: a package's names, or a module, are loaded on first access.

So `import d2l_ext` needs neither NumPy nor MXNet: the doctor uses it to find the usable
GPUs before anything is installed. And a worker of a job does not wait for `d2l`, which
imports Matplotlib and pandas.
"""

from importlib import import_module
from types import ModuleType


def names(package, **files):
    """Return a `__getattr__` for `package` that finds names in its files.

        __getattr__ = names(__name__, choice="describe try_all_devices")

    `files`: for each file, the names that it provides, separated by spaces. Source:
    PEP 562.
    """
    where = {name: file for file, given in files.items() for name in given.split()}

    def get(name):
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{where[name]}"), name)

    return get


def module(name):
    """Return the module `name`, which is imported on the first access to it."""

    class Later(ModuleType):
        def __getattr__(self, attribute):
            return getattr(import_module(name), attribute)

    return Later(name)
