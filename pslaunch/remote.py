"""What a worker of `launch.call` runs: `python -m pslaunch.remote FOLDER`."""

import os
import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from . import results, values
from .environment import START
from .node import import_mxnet


def main(folder):
    """Make the store, call the function of `folder`, and leave its result there.

    An exception ends the process at once. The usual end would not: there a store
    waits for all other workers, which wait for this one.
    """
    try:
        folder = Path(folder)
        record = values.load(folder / "call")
        kv = _store(record)
        rank = kv.rank if kv else int(os.environ["DMLC_WORKER_ID"])
        result = _function(folder / "function.py", record["name"])(kv, *record["args"])
        results.leave(folder, os.environ.get(START, "1"), rank, result)
    except BaseException:  # noqa: BLE001, sys.exit() too would wait
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)


def _store(record):
    mx = import_mxnet()
    if record["np"]:
        mx.npx.set_np()
    return mx.kv.create(record["kv_type"]) if record["kv_type"] else None


def _function(path, name):
    spec = spec_from_file_location("worker_function", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


if __name__ == "__main__":
    main(sys.argv[1])
