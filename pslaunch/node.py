"""The program of a server or the scheduler: `python -m pslaunch.node`.

MXNet runs both inside `import mxnet`, depending on `DMLC_ROLE`, and ends the process
there. A scheduler needs none of its Python.
"""

import ctypes
import os
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

from .plan import all_nodes, node_id
from .processes import is_listening


def run_scheduler():
    """Run a scheduler, as `mxnet.kvstore_server` does, without importing MXNet."""
    folder = find_spec("mxnet").submodule_search_locations[0]
    library = ctypes.CDLL(str(Path(folder) / "libmxnet.so"), ctypes.RTLD_LOCAL)
    library.MXGetLastError.restype = ctypes.c_char_p
    handle = ctypes.c_void_p()
    # Only servers receive commands.
    controller = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    ignore = controller(lambda *_: None)
    failed = library.MXKVStoreCreate(b"dist", ctypes.byref(handle))
    if not failed:
        watch_heartbeats(library, handle)
        failed = library.MXKVStoreRunServer(handle, ignore, None)
    if failed:
        sys.exit(library.MXGetLastError().decode(errors="replace"))


def watch_heartbeats(library, handle, environ=os.environ):
    """Watch the nodes' heartbeats in a thread; end this process when one is missing.

    With `PS_HEARTBEAT_INTERVAL`, every node reports to the scheduler at that interval,
    in seconds. ps-lite counts the nodes it has not heard from for
    `PS_HEARTBEAT_TIMEOUT` seconds, but takes no action: `MXKVStoreGetNumDeadNode`
    returns the count only in the scheduler's process, which runs no user code. So the
    scheduler ends itself here, and then the launcher ends the job. The launcher notices
    killed and stopped processes without heartbeats (`supervise.py`); heartbeats also
    reveal a process that a debugger holds, and a stopped one sooner.

    Does nothing unless both variables are set. `library`: `libmxnet.so`. `handle`: the
    scheduler's store. Raises `ValueError` if the timeout is not longer than the
    interval.

    Developed in the chapter *Faults and recovery*.
    """
    timeout = _heartbeat_timeout(environ)
    if not timeout:
        return
    counts = int(environ["DMLC_NUM_WORKER"]), int(environ["DMLC_NUM_SERVER"])
    nodes = all_nodes(*counts)[1:]

    def is_dead(node):  # False before all nodes have joined
        count, number = ctypes.c_int(), node_id(*node)
        library.MXKVStoreGetNumDeadNode(handle, number, ctypes.byref(count), timeout)
        return count.value

    def watch():
        # Until the scheduler listens, the call would crash it.
        while not is_listening(int(environ["DMLC_PS_ROOT_PORT"])):
            time.sleep(0.1)
        gone = []
        while not gone:
            time.sleep(0.5)
            gone = ["{} {}".format(*node) for node in nodes if is_dead(node)]
        print(f"no heartbeat for {timeout} s: {', '.join(gone)}", file=sys.stderr,
              flush=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _heartbeat_timeout(environ):
    """Return the seconds without a heartbeat that end the job; 0 without heartbeats."""
    names = ("PS_HEARTBEAT_INTERVAL", "PS_HEARTBEAT_TIMEOUT")
    interval, timeout = (int(environ.get(name) or 0) for name in names)
    if not interval or not timeout:
        return 0
    if timeout <= interval:
        raise ValueError(f"PS_HEARTBEAT_TIMEOUT={timeout}: give more than the interval "
                         f"between two heartbeats, {interval} s")
    return timeout


if __name__ == "__main__":
    if os.environ["DMLC_ROLE"] == "scheduler":
        run_scheduler()
    else:
        import mxnet  # noqa: F401
