"""Calls of a function in every worker of a job: it is sent with its arguments, and its
results come back. Each worker runs this file: `python -m pslaunch.calls FOLDER`."""

import io
import linecache
import os
import pickle
import sys
import traceback
from functools import partial
from operator import itemgetter
from pathlib import Path

import cloudpickle
import numpy

from .plan import START, make
from .runner import carry_out
from .temporary import Folder


def call(function, *args, kv_type="dist_sync", **settings):
    """Run `function(kv, *args)` in every worker; return the results, by rank.

        def worker(kv, value):
            kv.init("a", mx.nd.zeros(2))
            kv.push("a", mx.nd.full(2, value))
            ...

        pslaunch.call(worker, 3.0, num_workers=2)

    `kv`: the worker's store of type `kv_type`, created beforehand; None with
    `kv_type=None`, for a function that creates it itself. `args` and results: anything
    that cloudpickle can pickle; MXNet arrays arrive as NumPy arrays. `settings`: as in
    `run`, except `check`. Hosts must share the folder of temporary files, through which
    arguments and results travel.

    The worker is a new process of the same Python. A copy of everything the function
    uses from its own notebook or file goes with it; other modules are imported there.

    Raises `LaunchError` if the job fails (a function that raises ends its job),
    `TypeError` if the function or an argument cannot be pickled.
    Developed in the chapter *The store by hand*.
    """
    return call_job(function, *args, kv_type=kv_type, **settings).results


def call_job(function, *args, kv_type="dist_sync", check=True, **settings):
    """Like `call`, but return the `Job`, with its logs and `results`.

    `check=False`: do not raise if the job fails; its `results` are then None.
    """
    mxnet = sys.modules.get("mxnet")
    # Workers use NumPy semantics if this process does.
    uses_np = bool(mxnet and mxnet.util.is_np_array())
    with Folder("d2l_ext-call-") as folder:
        write_call(folder, function, kv_type, args, uses_np)
        command = [sys.executable, "-m", "pslaunch.calls", folder]
        plan = make(command, **settings)
        job = carry_out(plan, partial(is_there, folder))
        start, count = job.restarts + 1, plan.settings.num_workers
        missing = [i for i in range(count) if not is_there(folder, start, i)]
        if not job.returncode and missing:
            job.returncode, job.culprit = 1, f"worker-{missing[0]}"
            job.cause = f"worker {missing[0]} ended with code 0, but without a result"
        if not job.returncode:
            job.results = read_results(folder, start, count)
    return job.check() if check else job


# ---- The call and the results, as files ----
# Reading a pickle runs it, so only this user can access the folder.


def write_call(folder, function, kv_type, args, uses_np):
    """Write the call that the workers run into `folder`."""
    if not callable(function):
        raise TypeError(f"{function!r} is not callable: give a function")
    own = function.func if isinstance(function, partial) else function
    module = sys.modules.get(getattr(own, "__module__", None))
    if module and getattr(own, "__globals__", None) is vars(module):
        # Pickle the function's module by value, like a notebook: a worker may not find
        # a test or script by its name, and need not run it.
        cloudpickle.register_pickle_by_value(module)
    name = getattr(function, "__qualname__", repr(function))
    sent = _pickled((function, args), f"{name}, what it uses, or an argument")
    # Tracebacks of workers should show the lines of cells, which are in no file.
    cells = {name: known for name, known in linecache.cache.items()
             if known[1:2] == (None,)}
    call = {"kv_type": kv_type, "np": uses_np, "cells": cells, "sent": sent}
    Path(folder, "call").write_bytes(pickle.dumps(call))


def main(folder):
    """Create the store, call the function in `folder`, and leave its result there.

    An exception ends the process at once. A regular exit would hang: the store waits
    for all other workers, which wait for this one.
    """
    try:
        call = pickle.loads(Path(folder, "call").read_bytes())
        linecache.cache.update(call["cells"])
        import mxnet as mx

        if call["np"]:
            mx.npx.set_np()
        kv = mx.kv.create(call["kv_type"]) if call["kv_type"] else None
        number = os.environ["DMLC_WORKER_ID"]
        # Every worker has rank 0 in a store that is not distributed.
        rank = kv.rank if kv and "dist" in kv.type else int(number)
        function, args = pickle.loads(call["sent"])
        result = function(kv, *args)
        write_result(_result(folder, os.environ.get(START, "1"), number), rank, result)
    except BaseException:  # noqa: BLE001, sys.exit() would wait, too
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)


def write_result(path, rank, result):
    """Write a worker's rank and result to `path`, atomically."""
    part, what = path.with_suffix(".part"), f"the result, a {type(result).__name__},"
    part.write_bytes(_pickled((rank, result), what))
    os.replace(part, path)


def is_there(folder, start, number):
    """Return whether the worker of this number has left its result."""
    return _result(folder, start, number).exists()


def read_results(folder, start, num_workers):
    """Return the results of all workers of a start, by rank."""
    paths = [_result(folder, start, number) for number in range(num_workers)]
    return [result for _, result in sorted(
        (pickle.loads(path.read_bytes()) for path in paths), key=itemgetter(0))]


def _result(folder, start, number):
    return Path(folder, f"result-{start}-{number}")


class _Pickler(cloudpickle.Pickler):
    """Pickles MXNet arrays as NumPy arrays: the reader may not have loaded MXNet."""

    def reducer_override(self, obj):
        if hasattr(type(obj), "asnumpy"):
            return numpy.asarray, (obj.asnumpy(),)
        return super().reducer_override(obj)


def _pickled(value, what):
    """Return `value` as bytes. `what`: its name in the `TypeError` if that fails."""
    file = io.BytesIO()
    try:
        _Pickler(file).dump(value)
    except Exception as error:
        raise TypeError(f"{what} cannot be sent to another process: {error}. Send its "
                        "contents, or create it in the function") from error
    return file.getvalue()


if __name__ == "__main__":
    main(sys.argv[1])
