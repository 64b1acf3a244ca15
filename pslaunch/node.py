"""What a server or the scheduler of a job runs: `python -m pslaunch.node`.

MXNet starts both inside `import mxnet`, as `DMLC_ROLE` says, and ends the process
there. The import takes seconds, most of them for packages that neither needs.
"""

import ctypes
import os
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from . import heartbeats


@contextmanager
def without(*packages):
    """Make `import` of these packages fail, as if they were not installed."""
    hidden = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def import_mxnet():
    """Import MXNet in half the time; it looks for these two, and can do without.

    What is lost: `mx.model.FeedForward` is no estimator of scikit-learn's, and
    `mx.contrib.quantization` can't calibrate by entropy.
    """
    with without("sklearn", "scipy"):
        import mxnet

        return mxnet


def run_scheduler():
    """What `mxnet.kvstore_server` does for a scheduler, without importing MXNet."""
    folder = find_spec("mxnet").submodule_search_locations[0]
    library = ctypes.CDLL(str(Path(folder) / "libmxnet.so"), ctypes.RTLD_LOCAL)
    library.MXGetLastError.restype = ctypes.c_char_p
    handle = ctypes.c_void_p()
    # Commands go to servers, none to a scheduler.
    controller = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    ignore = controller(lambda *_: None)
    failed = library.MXKVStoreCreate(b"dist", ctypes.byref(handle))
    if not failed:
        heartbeats.start(library, handle)
        failed = library.MXKVStoreRunServer(handle, ignore, None)
    if failed:
        sys.exit(library.MXGetLastError().decode(errors="replace"))


if __name__ == "__main__":
    if os.environ["DMLC_ROLE"] == "scheduler":
        run_scheduler()
    else:
        import_mxnet()
