"""Temporary folders that go with the process that made them, however it ends.

    process --pipe-- sweeper

Python removes a temporary folder when its process ends by itself, not when it is
killed, as Jupyter and nbval end kernels. So each folder has a sweeper, a shell in a
session of its own, started before the folder is made. It waits for the end of the pipe,
which no signal can keep the system from closing, and removes what is still there, for a
minute also a folder into which somebody still writes.
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

_sweepers, _lock = {}, threading.Lock()  # by name: one for each folder of this process


class Folder:
    """A new temporary folder, at `name`; a `with` gives its name, and removes it.

    `prefix`: how its name begins. Without a `with` it goes by `cleanup()`, with this
    object, or with this process, whichever is first. Raises `OSError` when there can
    be none.
    """

    def __init__(self, prefix="d2l_ext-"):
        name = f"{prefix}{os.urandom(8).hex()}"
        self.name = os.path.join(os.path.abspath(tempfile.gettempdir()), name)
        with _lock:
            _sweepers[self.name] = None
            _start_sweepers()
        os.mkdir(self.name, 0o700)
        self.cleanup = weakref.finalize(self, _remove, self.name)

    def __enter__(self):
        return self.name

    def __exit__(self, *error):
        self.cleanup()


def _start_sweepers():
    """Of the new folder, and anew those that somebody has killed. No variable of a job
    reaches them: they belong to none, and outlive this process for a moment."""
    for name, sweeper in _sweepers.items():
        if sweeper is None or sweeper.poll() is not None:
            _sweepers[name] = subprocess.Popen(
                ["/bin/sh", "-c", SWEEP, name], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True, cwd="/", env={"PATH": os.defpath},
            )


def _remove(name):
    shutil.rmtree(name, ignore_errors=True)
    with _lock:
        sweeper = _sweepers.pop(name, None)
    if sweeper:
        sweeper.stdin.close()
        with suppress(subprocess.TimeoutExpired):  # it goes on without this process
            sweeper.wait(1)


def _leave():
    """In a forked process: the pipes are its parent's, whose folders should go."""
    global _lock
    for sweeper in filter(None, _sweepers.values()):
        sweeper.stdin.close()
        sweeper.returncode = 0  # none of its children
    _sweepers.clear()
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_leave)
