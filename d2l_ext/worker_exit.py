"""A worker of a distributed job that fails must end, and not wait for the others."""

import os
import sys
from contextlib import suppress


def leave_on_error(environ=os.environ, system=sys):
    """In a worker (`DMLC_ROLE`), let an uncaught exception end the process at once.

    The usual end of a process frees its store, which waits there for all other
    workers, while they wait for this one: nobody would ever learn of the exception.
    `sys.exit` with a code is no exception in this sense: it still waits.
    """
    if environ.get("DMLC_ROLE") != "worker":
        return
    show = system.excepthook

    def leave_with_trace(kind, error, trace):
        show(kind, error, trace)
        leave(1, environ)

    system.excepthook = leave_with_trace


def leave(code, environ=os.environ):
    """In a worker, end the process at once with `code`; elsewhere do nothing."""
    if environ.get("DMLC_ROLE") == "worker":
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError):  # closed, or full
                stream.flush()
        os._exit(code)
