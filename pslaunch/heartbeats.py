"""The scheduler's eye on all nodes: who is not heard of for a while is lost.

With `PS_HEARTBEAT_INTERVAL` every node reports to the scheduler each so many seconds.
ps-lite counts those that it has not heard of for `PS_HEARTBEAT_TIMEOUT`, and does
nothing about it: `MXKVStoreGetNumDeadNode` answers, but only in the scheduler's own
process, where no user's code runs. So the scheduler ends itself here, and the launcher
the job. A process that is killed is noticed without, and so is one that a signal has
stopped (`stopped.py`): this is for one that hangs, and notices a stopped one sooner.
"""

import ctypes
import os
import sys
import threading
import time

from . import ports


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

    nodes = numbers(int(environ["DMLC_NUM_WORKER"]), int(environ["DMLC_NUM_SERVER"]))
    args = nodes, is_dead, timeout, int(environ["DMLC_PS_ROOT_PORT"])
    threading.Thread(target=_watch, args=args, daemon=True).start()


def numbers(num_workers, num_servers):
    """What ps-lite calls each node: a dict from its name to its number."""
    return {
        **{f"server {rank}": 8 + 2 * rank for rank in range(num_servers)},
        **{f"worker {rank}": 9 + 2 * rank for rank in range(num_workers)},
    }


def lost(nodes, is_dead):
    """The names of the nodes that are dead. Before all have joined, none is."""
    return [name for name, number in nodes.items() if is_dead(number)]


def _watch(nodes, is_dead, timeout, port):
    # Before it listens, the scheduler has no network yet, and asking would crash it.
    while port not in {number for _, number in ports.listening()}:
        time.sleep(0.1)
    while True:
        gone = lost(nodes, is_dead)
        if gone:
            print(f"no heartbeat for {timeout} s: {', '.join(gone)}", file=sys.stderr,
                  flush=True)  # fmt: skip
            os._exit(1)
        time.sleep(0.5)
