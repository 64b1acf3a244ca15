"""A function that runs in every worker of a job, and what it returns."""

import sys
from functools import partial
from pathlib import Path

from d2l_ext.temporary import Folder

from . import results, source, values
from .job import Job
from .plan import make
from .runner import READY_TIMEOUT, supervise


def call(function, *args, num_workers=2, num_servers=1, kv_type="dist_sync",
         **options):  # fmt: skip
    """Run `function(kv, *args)` in every worker; return what each returned, by rank.

        def worker(kv, value):
            kv.init("a", mx.nd.zeros(2))
            kv.push("a", mx.nd.full(2, value))
            ...

        launch.call(worker, 3.0, num_workers=2)

    `kv`: the worker's store of type `kv_type`, made before; None with `kv_type=None`,
    for a function that makes it itself. `args`, and what is returned: numbers,
    texts, arrays, lists and dicts; arrays come back as NumPy's, tuples as lists.
    `options`: as in `run`, but for `check`. Hosts must share the folder of temporary
    files, by which arguments and results travel.

    The worker is a new process, which gets the source of the function: what the
    function uses from outside must be arguments, modules, or imported from a module.

    Raises `LaunchError` when the job fails (a function that raises ends its job),
    `ValueError` when the function cannot be sent, `TypeError` when an argument can't.
    Developed in the chapter *The store by hand*.
    """
    return call_job(function, *args, num_workers=num_workers, num_servers=num_servers,
                    kv_type=kv_type, **options).results  # fmt: skip


def call_job(function, *args, num_workers=2, num_servers=1, kv_type="dist_sync",
             env=None, env_worker=None, env_server=None, env_scheduler=None,
             deadline=60.0, log_dir=None, stream=False, attempts=3,
             ready_timeout=READY_TIMEOUT, launcher=None, verbose=0,
             max_restarts=0, check=True, **where):  # fmt: skip
    """The same as `call`, but returns the `Job`: its logs, and `results`.

    `check=False`: a job that fails raises nothing, and its `results` are None.
    """
    text, job = source.script(function), Job()
    with Folder("d2l_ext-call-") as folder:
        folder = Path(folder)
        (folder / "function.py").write_text(text, encoding="utf-8")
        record = {"name": function.__name__, "kv_type": kv_type, "args": args,
                  "np": _uses_np()}  # fmt: skip
        values.save(folder / "call", record)
        command = [sys.executable, "-m", "pslaunch.remote", str(folder)]
        plan = make(command, num_workers, num_servers, env, env_worker, env_server,
                    env_scheduler, launcher, verbose, **where)  # fmt: skip
        supervise(plan, job, deadline, log_dir, stream, attempts, ready_timeout,
                  max_restarts, check, partial(results.is_there, folder))  # fmt: skip
        if not job.returncode:
            job.results = results.take(folder, job.restarts + 1, num_workers)
    return job


def _uses_np():
    """Whether arrays have NumPy's semantics here; then they do in the workers."""
    mxnet = sys.modules.get("mxnet")
    return bool(mxnet and mxnet.util.is_np_array())
