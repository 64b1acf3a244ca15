"""A function that runs in every worker of a job: how it gets there, with arguments,
and what it returns. Each worker runs this file: `python -m pslaunch.calls FOLDER`."""

import io
import linecache
import os
import pickle
import sys
import traceback
from functools import partial
from pathlib import Path

import cloudpickle
import numpy

from .environment import START
from .node import import_mxnet
from .plan import make
from .runner import carry_out
from .temporary import Folder


def call(function, *args, kv_type="dist_sync", **settings):
    """Run `function(kv, *args)` in every worker; return what each returned, by rank.

        def worker(kv, value):
            kv.init("a", mx.nd.zeros(2))
            kv.push("a", mx.nd.full(2, value))
            ...

        launch.call(worker, 3.0, num_workers=2)

    `kv`: the worker's store of type `kv_type`, made before; None with `kv_type=None`,
    for a function that makes it itself. `args`, and what is returned: what cloudpickle
    can carry; arrays of MXNet arrive as NumPy's. `settings`: as in `run`, but for
    `check`. Hosts must share the folder of temporary files, by which arguments and
    results travel.

    The worker is a new process, of the same Python. What the function uses of its own
    notebook or file goes with it, as a copy; any other module is imported there.

    Raises `LaunchError` when the job fails (a function that raises ends its job),
    `TypeError` when the function or an argument cannot be sent.
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
# Pickles: to read one is to run it. The folder is its user's alone.


def write(folder, function, kv_type, args, uses_np):
    """Write what workers run into `folder`: the function, and how it is called."""
    if not callable(function):
        raise TypeError(f"{function!r}: give a function")
    module = sys.modules.get(getattr(function, "__module__", None))
    if module and getattr(function, "__globals__", None) is vars(module):
        # As of a notebook, all that its module defines goes along: a worker might not
        # find a test or a script by its name, and need not run it.
        cloudpickle.register_pickle_by_value(module)
    name = getattr(function, "__qualname__", repr(function))
    sent = _pickled((function, args), f"{name}, what it uses, or an argument")
    # The lines of cells are in no file, and tracebacks of workers should show them.
    cells = {name: known for name, known in linecache.cache.items()
             if known[1:2] == (None,)}
    call = {"kv_type": kv_type, "np": uses_np, "cells": cells, "sent": sent}
    Path(folder, "call").write_bytes(pickle.dumps(call))


def main(folder):
    """Make the store, call the function of `folder`, and leave its result there.

    An exception ends the process at once. The usual end would not: there a store
    waits for all other workers, which wait for this one.
    """
    try:
        call = pickle.loads(Path(folder, "call").read_bytes())
        linecache.cache.update(call["cells"])
        mx = import_mxnet()
        if call["np"]:
            mx.npx.set_np()
        kv = mx.kv.create(call["kv_type"]) if call["kv_type"] else None
        rank = kv.rank if kv else int(os.environ["DMLC_WORKER_ID"])
        function, args = pickle.loads(call["sent"])
        result = function(kv, *args)
        leave(_result(folder, os.environ.get(START, "1"), rank), result)
    except BaseException:  # noqa: BLE001, sys.exit() too would wait
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)


def leave(path, result):
    """Write what a worker returned to `path`, where it is when it is whole."""
    part = path.with_suffix(".part")
    part.write_bytes(_pickled(result, f"the result, a {type(result).__name__},"))
    os.replace(part, path)


def is_there(folder, start, rank):
    """Whether this worker has left its result."""
    return _result(folder, start, rank).exists()


def take(folder, start, num_workers):
    """What all workers of a start returned, by rank."""
    paths = [_result(folder, start, rank) for rank in range(num_workers)]
    return [pickle.loads(path.read_bytes()) for path in paths]


def _result(folder, start, rank):
    return Path(folder, f"result-{start}-{rank}")


class _Pickler(cloudpickle.Pickler):
    """Makes arrays of MXNet NumPy's: who reads them may have no MXNet loaded."""

    def reducer_override(self, obj):
        if hasattr(type(obj), "asnumpy"):
            return numpy.asarray, (obj.asnumpy(),)
        return super().reducer_override(obj)


def _pickled(value, what):
    """`value` as bytes. Raises `TypeError`, in which `what` is its name."""
    file = io.BytesIO()
    try:
        _Pickler(file).dump(value)
    except Exception as error:
        raise TypeError(f"{what} cannot go to another process: {error}. Send what is "
                        "in it, or make it in the function") from error
    return file.getvalue()


if __name__ == "__main__":
    main(sys.argv[1])
