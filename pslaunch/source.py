"""The source text of a function, complete enough to run in another process."""

import builtins
import dis
import inspect
import sys
import textwrap
from types import CodeType, FunctionType, ModuleType

#: What each script begins with, besides what the function's own module imported.
IMPORTS = {
    "mx": "import mxnet as mx",
    "np": "from mxnet import np",
    "npx": "from mxnet import npx",
    "autograd": "from mxnet import autograd",
    "gluon": "from mxnet import gluon",
    "numpy": "import numpy",
}


def script(function):
    """A program that defines `function`, with the imports that it needs.

    Names from outside of it may be modules, and functions or classes of another
    module: they are imported under the same name. Raises `ValueError` for anything
    that has no name of its own or uses what it has not got.
    """
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
        raise ValueError(f"{function!r}: give a function that was defined with def")
    if function.__closure__:
        names = ", ".join(function.__code__.co_freevars)
        raise ValueError(f"{function.__name__} uses {names} of the function around it: "
                         "make that an argument")  # fmt: skip
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise ValueError(f"the source of {function.__name__} cannot be read: define "
                         "it in a cell or a file") from None  # fmt: skip
    lines = [_import(function, name) for name in sorted(_names(function.__code__))]
    return "\n".join([*filter(None, lines), "", "", text])


def _names(code):
    """The global names that `code` and the functions inside of it use."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname in
             ("LOAD_GLOBAL", "LOAD_NAME")}  # fmt: skip
    inside = [c for c in code.co_consts if isinstance(c, CodeType)]
    return found.union(*map(_names, inside)) - set(_stored(code))


def _stored(code):
    return (i.argval for i in dis.get_instructions(code) if i.opname in
            ("STORE_GLOBAL", "STORE_NAME"))  # fmt: skip


def _import(function, name):
    """The line that gives another process `name`; None when it needs none."""
    if name in (function.__name__, "__name__"):  # a class inside asks for the latter
        return None
    if name not in function.__globals__:
        if name in IMPORTS or hasattr(builtins, name):
            return IMPORTS.get(name)
        raise ValueError(f"{function.__name__} uses {name}, which is not defined")
    value = function.__globals__[name]
    if isinstance(value, ModuleType):
        return _import_module(value.__name__, name)
    home, own = getattr(value, "__module__", None), getattr(value, "__name__", None)
    elsewhere = home not in (None, "__main__", function.__module__)
    if elsewhere and getattr(sys.modules.get(home), str(own), None) is value:
        return f"from {home} import {own} as {name}"
    raise ValueError(
        f"{function.__name__} uses {name}, which is defined outside of it: make it an "
        "argument, or define it inside. Only modules, and what is imported from them, "
        "reach the workers."
    )


def _import_module(module, name):
    if module == name or "." not in module:
        return f"import {module} as {name}" if module != name else f"import {module}"
    package, _, last = module.rpartition(".")
    return f"from {package} import {last} as {name}"
