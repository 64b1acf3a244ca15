"""What a server or the scheduler of a job runs: `python -m pslaunch.node`.

MXNet starts both inside `import mxnet`, as `DMLC_ROLE` says, and ends the process
there. The import takes seconds, most of them for packages that neither needs.
"""

import ctypes
import os
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

from . import environment, ports


def import_mxnet():
    """Import MXNet in half the time: as if two packages were not installed, for which
    it looks, and without which it can do.

    What is lost: `mx.model.FeedForward` is no estimator of scikit-learn's, and
    `mx.contrib.quantization` can't calibrate by entropy.
    """
    hidden = {"sklearn", "scipy"} - sys.modules.keys()
    sys.modules.update(dict.fromkeys(hidden))
    try:
        import mxnet
    finally:
        for name in hidden:
            del sys.modules[name]
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
        watch_heartbeats(library, handle)
        failed = library.MXKVStoreRunServer(handle, ignore, None)
    if failed:
        sys.exit(library.MXGetLastError().decode(errors="replace"))


def watch_heartbeats(library, handle, environ=os.environ):
    """Watch from a thread, when both variables are set; end this process for the lost.

    With `PS_HEARTBEAT_INTERVAL` every node reports to the scheduler each so many
    seconds. ps-lite counts those that it has not heard from for `PS_HEARTBEAT_TIMEOUT`,
    and does nothing about it: `MXKVStoreGetNumDeadNode` answers, but only in the
    scheduler's own process, where no user's code runs. So the scheduler ends itself
    here, and the launcher the job. A process that is killed is noticed without, and so
    is one that a signal has stopped (`supervise.py`): this is for one that hangs, and
    notices a stopped one sooner.

    `library`: `libmxnet.so`. `handle`: of the scheduler's store. Raises `ValueError`
    when a node would be given up before its next heartbeat is due.

    Developed in the chapter *Faults and recovery*.
    """
    names = ("PS_HEARTBEAT_INTERVAL", "PS_HEARTBEAT_TIMEOUT")
    interval, timeout = (int(environ.get(name) or 0) for name in names)
    if not interval or not timeout:
        return
    if timeout <= interval:
        raise ValueError(f"PS_HEARTBEAT_TIMEOUT={timeout}: take more than the interval "
                         f"between two heartbeats, {interval} s")
    counts = int(environ["DMLC_NUM_WORKER"]), int(environ["DMLC_NUM_SERVER"])
    nodes = environment.names(*counts)[1:]

    def is_dead(node):  # none is before all have joined
        count, number = ctypes.c_int(), environment.node_id(*node)
        library.MXKVStoreGetNumDeadNode(handle, number, ctypes.byref(count), timeout)
        return count.value

    def watch():
        # Before it listens, the scheduler has no network yet: asking would crash it.
        while not ports.is_listening(int(environ["DMLC_PS_ROOT_PORT"])):
            time.sleep(0.1)
        gone = []
        while not gone:
            time.sleep(0.5)
            gone = ["{} {}".format(*node) for node in nodes if is_dead(node)]
        print(f"no heartbeat for {timeout} s: {', '.join(gone)}", file=sys.stderr,
              flush=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    if os.environ["DMLC_ROLE"] == "scheduler":
        run_scheduler()
    else:
        import_mxnet()
