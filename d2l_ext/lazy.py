"""Lazy imports: a package's names are loaded on first access.

So `import d2l_ext` needs neither NumPy nor MXNet: the doctor uses it to find the usable
GPUs before anything is installed.
"""

from importlib import import_module


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
