"""Temporary folders that are removed even if the process that made them is killed.

    process --pipe-- sweeper

Python removes a temporary folder when its process ends by itself, but not when it is
killed, and Jupyter and nbval kill kernels. So each folder has a sweeper, a shell in a
session of its own that starts before the folder is made. When the pipe closes, which
happens even if the process is killed, the sweeper removes the folder. It tries for a
minute, in case another process still writes there.
"""

import os
import shutil
import subprocess
import tempfile
import threading
import weakref
from contextlib import suppress

SWEEP = """
trap '' HUP INT TERM  # meant for the process, which may obey
read -r _
tries=600
until rm -rf -- "$0" || [ $((tries -= 1)) = 0 ]; do sleep 0.1; done
"""

#: One for each folder of this process, by name. A garbage collection, which may come
#: while this thread holds the lock, removes folders.
_sweepers, _lock = {}, threading.RLock()


class Folder:
    """A new temporary folder at `name`; a `with` returns the name, and removes it.

    `prefix`: the start of its name. Without a `with` the folder is removed by
    `cleanup()`, with this object, or with this process, whichever comes first. Raises
    `OSError` if it cannot be created.
    """

    def __init__(self, prefix="d2l_ext-"):
        name = f"{prefix}{os.urandom(8).hex()}"
        self.name = os.path.join(os.path.abspath(tempfile.gettempdir()), name)
        with _lock:
            _sweepers[self.name] = None
            _start_sweepers()
        try:
            os.mkdir(self.name, 0o700)
        except OSError:
            _remove(self.name)  # its sweeper, too
            raise
        self.cleanup = weakref.finalize(self, _remove, self.name)

    def __enter__(self):
        return self.name

    def __exit__(self, *error):
        self.cleanup()


def _start_sweepers():
    """Start the sweeper of a new folder, and restart those that were killed. They get
    no variables of a job: they belong to none, and briefly outlive this process."""
    for name, sweeper in list(_sweepers.items()):
        if name in _sweepers and (sweeper is None or sweeper.poll() is not None):
            _sweepers[name] = subprocess.Popen(
                ["/bin/sh", "-c", SWEEP, name], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True, cwd="/", env={"PATH": os.defpath},
            )


def _remove(name):
    with _lock:
        sweeper = _sweepers.pop(name, None)
    if sweeper:  # in a forked process, the folder is its parent's
        shutil.rmtree(name, ignore_errors=True)
        sweeper.stdin.close()
        with suppress(subprocess.TimeoutExpired):  # it continues without this process
            sweeper.wait(1)


def _leave():
    """Close the parent's pipes in a forked process, which else would keep folders."""
    global _lock
    for sweeper in filter(None, _sweepers.values()):
        sweeper.stdin.close()
        sweeper.returncode = 0  # not a child of this process
    _sweepers.clear()
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_leave)
