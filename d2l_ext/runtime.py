"""What `import d2l_ext` changes in its process: settings, memory, how a worker ends.

MXNet reads `OMP_NUM_THREADS` only when its shared library is loaded, and
`MXNET_CPU_TEMP_COPY` only when a Python thread first needs scratch memory or random
numbers.
"""

import ctypes
import os
import re
import socket
import sys
import sysconfig
import threading
import time
from contextlib import suppress
from pathlib import Path

#: The settings with which two CPU contexts run in parallel, and why.
SETTINGS = {
    # One core per device. By default every operator of every device has a thread for
    # half of the logical processors (x86), and the threads compete for the cores.
    "OMP_NUM_THREADS": "1",
    # All CPU contexts share these scratch buffers, four by default. Operators
    # of two devices that drew the same buffer wait for each other.
    "MXNET_CPU_TEMP_COPY": "256",
}
#: Stops MXNet from printing a line whenever a symbol is bound. It is read when the
#: first one is, so it is hardly ever set too late.
QUIET = {"MXNET_SUBGRAPH_VERBOSE": "0"}
#: Stops the C library from returning freed memory to the system between two steps: the
#: next step would fetch it again, page by page, and the time that a second device saves
#: there would look like its speed-up. A row has `mallopt`'s number, the variable with
#: the same effect, and the value: only blocks from one gibibyte are returned (the C
#: library before glibc 2.35 refuses more than 32 MiB and keeps its 128 KiB), and one
#: heap serves all threads. Existing threads, as in a notebook, have heaps of 64 MiB
#: that later threads reuse; these are returned whole unless the pad on top is larger.
KEPT = ((-3, "MALLOC_MMAP_THRESHOLD_", 1 << 30), (-8, "MALLOC_ARENA_MAX", 1),
        (-1, "MALLOC_TRIM_THRESHOLD_", (1 << 31) - 1),
        (-2, "MALLOC_TOP_PAD_", 1 << 27))
#: Set to 0 to leave the C library's defaults.
KEEP_MEMORY = "D2L_EXT_KEEP_MEMORY"
#: Set to 1 to get a warning instead of an error when MXNet was loaded first.
ALLOW_LATE = "D2L_EXT_ALLOW_LATE_IMPORT"
SUPPORTED_PYTHON = ((3, 9), (3, 11))


class ImportedTooLateError(ImportError):
    """MXNet was loaded before the settings that this library needs were made."""


def check_python(version=None):
    """Refuse a Python that MXNet 1.9.1 and d2l 1.0.3 cannot run on.

    `version`: `(major, minor)`, default the running one.
    Raises `RuntimeError` outside 3.9 to 3.11.
    """
    version = tuple(version or sys.version_info[:2])
    oldest, newest = SUPPORTED_PYTHON
    if not oldest <= version <= newest:
        raise RuntimeError(
            f"Python {version[0]}.{version[1]} cannot run this book: d2l 1.0.3 pins "
            "NumPy 1.23.5, which has no wheel beyond Python 3.11, and the book is "
            "tested from 3.9. Install Python 3.11 and run `make book` again."
        )


def prepare(environ=os.environ, modules=sys.modules):
    """Put `SETTINGS` and `QUIET` into `environ`; existing values are kept.

    Returns the effective values of `SETTINGS`. Raises `ImportedTooLateError` when MXNet
    is among `modules` already and a setting was missing when it loaded. With
    `D2L_EXT_ALLOW_LATE_IMPORT=1` that is a warning on standard error: the results are
    right, the speed-up is not. Developed in the chapter *Devices*.
    """
    for name, value in QUIET.items():
        environ.setdefault(name, value)
    missing = {k: v for k, v in SETTINGS.items() if k not in environ}
    if missing and "mxnet" in modules:
        wanted = " ".join(f"{k}={v}" for k, v in missing.items())
        message = (
            "mxnet was imported before d2l_ext, so its engine started without "
            f"{wanted}. Two CPU devices would not run side by side. "
            "Restart the kernel and put `import d2l_ext` before the first import of "
            f"mxnet or d2l, or export {wanted} before Python starts."
        )
        if environ.get(ALLOW_LATE) != "1":
            raise ImportedTooLateError(message)
        print(f"WARNING: {message}", file=sys.stderr)
        return {k: environ.get(k) for k in SETTINGS}
    environ.update(missing)
    return {k: environ[k] for k in SETTINGS}


def keep_memory(environ=os.environ):
    """Make this process keep the memory that it frees (`KEPT`); Linux with glibc only.

    Variables of the C library that are set take precedence, and with
    `D2L_EXT_KEEP_MEMORY=0` nothing changes. Returns the names of the variables whose
    settings took effect.
    Source: mallopt(3).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or environ.get(KEEP_MEMORY) == "0":
        return []
    wanted = [entry for entry in KEPT if entry[1] not in environ]
    return [name for number, name, value in wanted if mallopt(number, value)]


def preload_cuda(site=None):
    """Load the CUDA 11 libraries from the `nvidia-*-cu11` wheels, if installed.

    The GPU build of MXNet links to them by name, and the dynamic loader does not
    look into site-packages. A library that is loaded already is found.
    `site`: the site-packages folder, default this environment's. NVBLAS is left
    out: once loaded, it takes over other libraries' matrix products.

    Returns the file names that were loaded: none without these wheels.
    """
    root = Path(site or sysconfig.get_paths()["purelib"]) / "nvidia"
    found = [p for p in root.glob("*/lib/*.so*") if "nvblas" not in p.name]
    pending = sorted(p for p in found if p.is_file())
    loaded = []
    tried = None
    while pending != tried:  # the rest may need what this round loads
        tried = pending[:]
        for path in tried:
            with suppress(OSError):
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
                loaded.append(path.name)
                pending.remove(path)
    return loaded


def leave_on_error(environ=os.environ, system=sys):
    """In a worker (`DMLC_ROLE`), let an uncaught exception end the process at once.

    A process that ends normally frees its store, which then waits for all other
    workers, while they wait for this one: the exception would never be seen. `sys.exit`
    with a code still waits.
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
            with suppress(AttributeError, OSError, ValueError):  # none, full, closed
                stream.flush()
        os._exit(code)


# ---- Variables left over in a shell ----

ROLES = ("worker", "server", "scheduler")
#: The syntax of a number of threads or buffers, a list of them, and the engines.
_COUNT = re.compile("[1-9][0-9]{0,8}")
_COUNTS = re.compile("[1-9][0-9]{0,8}(,[1-9][0-9]{0,8})*")
_ENGINES = ("NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice")


def check_variables(environ=os.environ):
    """Raise `ValueError` for a variable whose value can break MXNet or a job.

    MXNet itself fails on import or in its first operation: with a traceback, an abort,
    or an endless wait. Numbers such as 04, which MXNet accepts, are refused, too.
    """
    rules = {
        "OMP_NUM_THREADS": (_COUNTS.fullmatch, "a whole number from 1"),
        "MXNET_CPU_WORKER_NTHREADS": (_COUNT.fullmatch, "a whole number from 1"),
        "MXNET_CPU_TEMP_COPY": (_COUNT.fullmatch, "a whole number from 1"),
        "MXNET_ENGINE_TYPE": (_ENGINES.__contains__, f"one of {', '.join(_ENGINES)}"),
        "DMLC_ROLE": (ROLES.__contains__, f"one of {', '.join(ROLES)}"),
    }
    if "DMLC_ROLE" in environ:
        rules.update(_rules_of_a_job(environ))
    for name, (is_right, expected) in rules.items():
        value = environ.get(name)
        if value is None and name in ROOT and "DMLC_ROLE" in environ:
            raise ValueError(
                f"DMLC_ROLE={environ['DMLC_ROLE']} is set, and {name} is not: if it is "
                "left over from another job, `unset DMLC_ROLE`")
        if value is not None and not is_right(value):
            raise ValueError(f"{name}={value}: expected {expected}. Correct it, or "
                             f"`unset {name}`")


#: The variables of each process of a job.
ROOT = ("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_WORKER", "DMLC_NUM_SERVER")


def _rules_of_a_job(environ):
    def is_port(text):
        return _COUNT.fullmatch(text) and int(text) < 65536

    def is_ring(text):
        places = text.split()[1:]  # after the token
        return (environ.get("DMLC_WORKER_ID", "").isdecimal() and places
                and all(is_port(place.rpartition(":")[2]) for place in places))

    return {
        "DMLC_PS_ROOT_URI": (bool, "the address of the scheduler"),
        "DMLC_PS_ROOT_PORT": (is_port, "a port, 1 to 65535"),
        "DMLC_NUM_WORKER": (_COUNT.fullmatch, "a whole number from 1"),
        "DMLC_NUM_SERVER": (str.isdecimal, "a whole number from 0"),
        "D2L_EXT_RING": (is_ring, "a token and all addresses, with DMLC_WORKER_ID"),
    }


def refuse_a_role_in_a_notebook(environ=os.environ, modules=sys.modules):
    """Raise `RuntimeError` in a notebook's kernel that has a role in a job.

    As a server or scheduler it would never answer again.
    """
    role = environ.get("DMLC_ROLE")
    if role and "ipykernel" in modules:
        raise RuntimeError(
            f"DMLC_ROLE={role} is set in this notebook, which would make it a process "
            "of a job: `unset DMLC_ROLE` in the shell from which Jupyter is started, "
            "or begin with `import os; del os.environ['DMLC_ROLE']`"
        )


def tell_of_a_role(environ=os.environ, seconds=10.0):
    """Report, on standard error, a role that `pslaunch` did not give this process.

    A scheduler or a server trains nothing, and a worker or a server waits forever if no
    scheduler answers. Returns the thread that reports this every `seconds` to
    2·`seconds` seconds, or None if there is nothing to wait for.
    """
    role, where = environ.get("DMLC_ROLE"), [environ.get(name) for name in ROOT]
    if not role or "D2L_EXT_JOB" in environ:
        return None
    address, port, workers, servers = where
    one = "the scheduler, which trains nothing," if role == "scheduler" else f"a {role}"
    line = f"DMLC_ROLE={role} is set: this process is {one}"
    print(f"d2l-ext-train: {line} of a job of {workers} workers and {servers} servers "
          f"at {address}:{port}; if that is left over from another job, "
          "`unset DMLC_ROLE`", file=sys.stderr, flush=True)
    if role == "scheduler":
        return None

    def watch():
        while not _answers(address, int(port), seconds):
            print(f"d2l-ext-train: the scheduler at {address}:{port} does not answer; "
                  f"waiting for it", file=sys.stderr, flush=True)
            time.sleep(seconds)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def _answers(address, port, seconds):
    with suppress(OSError), socket.create_connection((address, port), seconds):
        return True
    return False


def cores():
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
