"""The scheduler's eye on all nodes: who is not heard of for a while is lost.

With `PS_HEARTBEAT_INTERVAL` every node reports to the scheduler each so many seconds.
ps-lite counts those that it has not heard of for `PS_HEARTBEAT_TIMEOUT`, and does
nothing about it: `MXKVStoreGetNumDeadNode` answers, but only in the scheduler's own
process, where no user's code runs. So the scheduler ends itself here, and the launcher
the job. A process that is killed is noticed without, and so is one that a signal has
stopped (`supervise.py`): this is for one that hangs, and notices a stopped one sooner.
"""

import ctypes
import os
import sys
import threading
import time

from . import environment, ports


def start(library, handle, environ=os.environ):
    """Watch from a thread, when both variables are set; end this process for the lost.

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
                         f"between two heartbeats, {interval} s")  # fmt: skip

    def is_dead(number):
        count = ctypes.c_int()
        library.MXKVStoreGetNumDeadNode(handle, number, ctypes.byref(count), timeout)
        return count.value

    counts = int(environ["DMLC_NUM_WORKER"]), int(environ["DMLC_NUM_SERVER"])
    nodes = {f"{role} {rank}": environment.node_id(role, rank)
             for role, rank in environment.names(*counts)[1:]}  # fmt: skip
    args = nodes, is_dead, timeout, int(environ["DMLC_PS_ROOT_PORT"])
    threading.Thread(target=_watch, args=args, daemon=True).start()


def lost(nodes, is_dead):
    """The names of the nodes that are dead. Before all have joined, none is."""
    return [name for name, number in nodes.items() if is_dead(number)]


def _watch(nodes, is_dead, timeout, port):
    # Before it listens, the scheduler has no network yet, and asking would crash it.
    while not ports.is_listening(port):
        time.sleep(0.1)
    while True:
        gone = lost(nodes, is_dead)
        if gone:
            print(f"no heartbeat for {timeout} s: {', '.join(gone)}", file=sys.stderr,
                  flush=True)  # fmt: skip
            os._exit(1)
        time.sleep(0.5)
