"""Blocking calls: where Python waited for the engine, and how long."""

import linecache
import os
import sys
from collections import namedtuple
from contextlib import contextmanager
from time import perf_counter

import mxnet as mx

#: A blocking call: the line that made it, when it began and ended, in seconds of
#: `time.perf_counter`.
Wait = namedtuple("Wait", "line start end")

#: Whatever waits in MXNet's Python, waits in one of these functions of its library.
FUNCTIONS = (
    "MXNDArraySyncCopyToCPU",  # asnumpy, float, bool, print
    "MXNDArraySyncCopyFromCPU",  # x[:] = a NumPy array
    "MXNDArrayWaitToRead",
    "MXNDArrayWaitToWrite",
    "MXNDArrayWaitAll",
)


@contextmanager
def note():
    """Note every blocking call inside the `with` block; yields a list of `Wait`.

        with blocking.note() as waits:
            step()
        print(len(waits), "blocking calls")

    `wait.line` is the source line outside of MXNet, or its file and number where
    there is no source. A call whose result is there already is noted as well: look
    at its length. Making an array from NumPy's counts too, since it copies.

    Developed in the chapter *Why is there no speed-up?*
    """
    library, waits = mx.base._LIB, []
    originals = {name: getattr(library, name) for name in FUNCTIONS}
    for name, function in originals.items():
        setattr(library, name, _noted(function, waits))
    try:
        yield waits
    finally:
        for name, function in originals.items():
            setattr(library, name, function)


def _noted(function, waits):
    def call(*arguments):
        start = perf_counter()
        try:
            return function(*arguments)
        finally:
            waits.append(Wait(_line(), start, perf_counter()))

    return call


def _line():
    """The line of the innermost frame that is not MXNet's or this module's."""
    frame = sys._getframe(1)
    ours = (__name__, "mxnet", "contextlib")
    while frame.f_back and _module(frame).startswith(ours):
        frame = frame.f_back
    file, number = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(file, number).strip()
    return source or f"{os.path.basename(file)}, line {number}"


def _module(frame):
    return frame.f_globals.get("__name__", "")
