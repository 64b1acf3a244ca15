"""Run a learner's code in a child process, with limits on time and memory.

    verdict = in_a_child(lambda: judge(function), otherwise)

The code may loop forever, exhaust memory, or crash its process: the notebook and its
variables are not affected. MXNet's engine stops before a fork and restarts on both
sides.
"""

import json
import math
import os
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

try:
    import resource
except ModuleNotFoundError:  # in a page, which ends its worker instead
    resource = None

#: Limits of the learner's code: seconds of processor time, and additional bytes. Code
#: that waits, for a lock or a disk, may take `PATIENCE` times as long.
SECONDS, ROOM, PATIENCE = 10, 4 << 30, 10
#: A loop in C handles no signal: the kernel ends it after this many times `SECONDS`.
IN_C = 3


class TooLong(BaseException):
    """The learner's code took too long; `except Exception` does not catch this."""


def in_a_child(function, otherwise):
    """Return the result of `function()`, run in a child process, as JSON restores it.

    If the child fails, the result is `otherwise(words)`, where `words` is "It has not
    ended after …" or "It ended Python …".
    """
    if resource is None:
        return json.loads(json.dumps(function()))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as found:
        child = os.fork()
        if not child:
            _child(function, found)
        try:
            ended, status = _ended(child, PATIENCE * SECONDS * IN_C)
        except BaseException:  # Control-C
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        found.seek(0)
        text = found.read()
    if text:
        return json.loads(text)
    if not ended:
        return otherwise(too_long(f"{PATIENCE * SECONDS * IN_C:g} seconds"))
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return otherwise(too_long(f"{IN_C * SECONDS:g} seconds of computing"))
    how = f"status {os.WEXITSTATUS(status)}" if os.WIFEXITED(status) else (
        signal.Signals(os.WTERMSIG(status)).name)
    return otherwise(f"It ended Python itself, with {how}.")


def too_long(how_long):
    return f"It has not ended after {how_long}: does a loop never end?"


def _child(function, found):
    status = 1
    try:
        text = json.dumps(function())
        found.write(text)
        found.flush()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        status = 0
    finally:
        os._exit(status)


def _ended(child, seconds):
    """Return (whether the child ended within `seconds`, its status); else kill it."""
    end, pause = time.monotonic() + seconds, 0.001
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return True, status
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    os.kill(child, signal.SIGKILL)
    return False, os.waitpid(child, 0)[1]


@contextmanager
def limits():
    """Raise `TooLong` or `MemoryError` if this context exceeds the limits.

    Processor time counts, because a slow or busy machine is not the code's fault. An
    import that a judge needs may finish; then the time is counted anew.
    """
    if resource is None:
        yield
        return
    bounds = {signal.ITIMER_PROF: SECONDS, signal.ITIMER_REAL: PATIENCE * SECONDS}

    def end(number, frame):
        if not _imports(frame):
            computed = number == signal.SIGPROF
            raise TooLong(f"{SECONDS} seconds of computing" if computed
                          else f"{PATIENCE * SECONDS:g} seconds")
        begin()

    def begin():
        for timer, seconds in bounds.items():
            signal.setitimer(timer, seconds, 1)  # again, if it was caught
        seconds = math.ceil(time.process_time() + IN_C * SECONDS)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]  # the system's: it stays
        most = hard if hard != resource.RLIM_INFINITY else seconds
        resource.setrlimit(resource.RLIMIT_CPU, (min(seconds, most), hard))

    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, end)
    most = _limit_memory()
    begin()
    try:
        yield
    finally:
        for timer in bounds:
            signal.setitimer(timer, 0)
        resource.setrlimit(resource.RLIMIT_AS, most)


def _limit_memory():
    """Limit the memory of this process, if it is unlimited; return the old limits."""
    most = resource.getrlimit(resource.RLIMIT_AS)
    if most[0] == resource.RLIM_INFINITY:
        used = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        limit = used * resource.getpagesize() + ROOM
        resource.setrlimit(resource.RLIMIT_AS, (limit, most[1]))
    return most


def _imports(frame):
    """Return whether an import is running in `frame` or in one of its callers."""
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
