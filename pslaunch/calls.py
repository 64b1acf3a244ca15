"""A function that runs in every worker of a job: how it gets there, with arguments,
and what it returns. Each worker runs this file: `python -m pslaunch.calls FOLDER`."""

import builtins
import dis
import inspect
import json
import os
import sys
import textwrap
import traceback
from functools import partial
from pathlib import Path
from runpy import run_path
from types import CodeType, FunctionType, ModuleType

import numpy

from .environment import START
from .node import import_mxnet
from .plan import make
from .runner import carry_out
from .temporary import Folder

#: Modules that a function may use, besides what its own module imported.
IMPORTS = {"mx": "mxnet", "np": "mxnet.numpy", "npx": "mxnet.numpy_extension",
           "autograd": "mxnet.autograd", "gluon": "mxnet.gluon", "numpy": "numpy"}
_ARRAY = "array of the .npz"


def call(function, *args, kv_type="dist_sync", **settings):
    """Run `function(kv, *args)` in every worker; return what each returned, by rank.

        def worker(kv, value):
            kv.init("a", mx.nd.zeros(2))
            kv.push("a", mx.nd.full(2, value))
            ...

        launch.call(worker, 3.0, num_workers=2)

    `kv`: the worker's store of type `kv_type`, made before; None with `kv_type=None`,
    for a function that makes it itself. `args`, and what is returned: numbers,
    texts, arrays, lists and dicts; arrays come back as NumPy's, tuples as lists.
    `settings`: as in `run`, but for `check`. Hosts must share the folder of temporary
    files, by which arguments and results travel.

    The worker is a new process, which gets the source of the function: what the
    function uses from outside must be arguments, modules, or imported from a module.

    Raises `LaunchError` when the job fails (a function that raises ends its job),
    `ValueError` when the function cannot be sent, `TypeError` when an argument can't.
    Developed in the chapter *The store by hand*.
    """
    return call_job(function, *args, kv_type=kv_type, **settings).results


def call_job(function, *args, kv_type="dist_sync", check=True, **settings):
    """The same as `call`, but returns the `Job`: its logs, and `results`.

    `check=False`: a job that fails raises nothing, and its `results` are None.
    """
    mxnet = sys.modules.get("mxnet")
    # Whether arrays have NumPy's semantics here; then they do in the workers.
    uses_np = bool(mxnet and mxnet.util.is_np_array())
    with Folder("d2l_ext-call-") as folder:
        write(folder, function, kv_type, args, uses_np)
        command = [sys.executable, "-m", "pslaunch.calls", folder]
        plan = make(command, **settings)
        job = carry_out(plan, partial(is_there, folder))
        if not job.returncode:
            job.results = take(folder, job.restarts + 1, plan.settings.num_workers)
    return job.check() if check else job


# ---- What is there for a worker, and what it leaves ----


def write(folder, function, kv_type, args, uses_np):
    """Write what workers run into `folder`: the source, and how it is called."""
    (Path(folder) / "function.py").write_text(script(function), encoding="utf-8")
    save(Path(folder) / "call", {"name": function.__name__, "kv_type": kv_type,
                                 "args": args, "np": uses_np})  # fmt: skip


def main(folder):
    """Make the store, call the function of `folder`, and leave its result there.

    An exception ends the process at once. The usual end would not: there a store
    waits for all other workers, which wait for this one.
    """
    try:
        folder = Path(folder)
        record = load(folder / "call")
        mx = import_mxnet()
        if record["np"]:
            mx.npx.set_np()
        kv = mx.kv.create(record["kv_type"]) if record["kv_type"] else None
        rank = kv.rank if kv else int(os.environ["DMLC_WORKER_ID"])
        function = run_path(str(folder / "function.py"))[record["name"]]
        result = function(kv, *record["args"])
        save(_path(folder, os.environ.get(START, "1"), rank), result)
    except BaseException:  # noqa: BLE001, sys.exit() too would wait
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)


def is_there(folder, start, rank):
    """Whether this worker has left its result."""
    return Path(f"{_path(folder, start, rank)}.npz").exists()


def take(folder, start, num_workers):
    """What all workers of a start returned, by rank."""
    return [load(_path(folder, start, rank)) for rank in range(num_workers)]


def _path(folder, start, rank):
    return Path(folder) / f"result-{start}-{rank}"


# ---- Arguments and results: JSON, with arrays beside it, in one .npz ----
# No pickle: to read one is to run it.


def save(path, value):
    """Write `value` to `path`.npz, which is there when it is whole.

    `value`: None, truth values, numbers, texts, arrays of NumPy and MXNet, and lists,
    tuples and dicts of those, whose keys are texts. Tuples come back as lists, arrays
    as NumPy's. Raises `TypeError` for anything else, and names it.
    """
    arrays = {}
    text = json.dumps(_plain(value, arrays))
    numpy.savez(f"{path}.part.npz", text=text, **arrays)
    os.replace(f"{path}.part.npz", f"{path}.npz")


def load(path):
    """Read what `save` wrote."""
    with numpy.load(f"{path}.npz", allow_pickle=False) as npz:

        def whole(found):
            return npz[found[_ARRAY]] if found.keys() == {_ARRAY} else found

        return json.loads(str(npz["text"]), object_hook=whole)


def _plain(value, arrays):
    """`value` for JSON, with its arrays moved to `arrays`."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, numpy.generic):
        return value.item()
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(part, arrays) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part, arrays) for part in value]
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    if isinstance(value, numpy.ndarray) and not value.dtype.hasobject:
        name = str(len(arrays))
        arrays[name] = value
        return {_ARRAY: name}
    raise TypeError(
        f"{value!r}: numbers, texts, arrays, lists, and dicts with texts as keys can "
        f"go to another process; a {type(value).__name__} cannot"
    )


# ---- The source text of a function ----


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
    used, own = set(), set()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            used.add(step.argval)
        elif step.opname in ("STORE_GLOBAL", "STORE_NAME"):
            own.add(step.argval)
    inside = [c for c in code.co_consts if isinstance(c, CodeType)]
    return used.union(*map(_names, inside)) - own


def _import(function, name):
    """The line that gives another process `name`; None when it needs none."""
    if name in (function.__name__, "__name__"):  # a class inside asks for the latter
        return None
    if name not in function.__globals__:
        if name in IMPORTS:
            return f"import {IMPORTS[name]} as {name}"
        if hasattr(builtins, name):
            return None
        raise ValueError(f"{function.__name__} uses {name}, which is not defined")
    value = function.__globals__[name]
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}"
    home, own = getattr(value, "__module__", None), getattr(value, "__name__", None)
    elsewhere = home not in (None, "__main__", function.__module__)
    if elsewhere and getattr(sys.modules.get(home), str(own), None) is value:
        return f"from {home} import {own} as {name}"
    raise ValueError(
        f"{function.__name__} uses {name}, which is defined outside of it: make it an "
        "argument, or define it inside. Only modules, and what is imported from them, "
        "reach the workers."
    )


if __name__ == "__main__":
    main(sys.argv[1])
