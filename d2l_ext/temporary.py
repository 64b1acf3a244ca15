"""Temporary folders that go with the process that made them, however it ends.

    process --pipe-- sweeper

Python removes a temporary folder when its process ends by itself, not when it is
killed, as Jupyter and nbval end kernels. So the first folder of a process starts the
sweeper: this file, run as a program, in a session of its own. It is told of each folder
before that is made, and waits for the end of the pipe, which no signal can keep the
system from closing. Then it removes what is still there.

Standard library alone, so that the sweeper starts in a moment.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref

#: Seconds in which others may still write into a folder that is to go.
PATIENCE = 60


class Folder:
    """A new temporary folder, at `name`; a `with` gives its name, and removes it.

    `prefix`: how its name begins. Without a `with` it goes by `cleanup()`, with this
    object, or with this process, whichever is first. Raises `OSError` when there can
    be none.
    """

    def __init__(self, prefix="d2l_ext-"):
        name = f"{prefix}{os.urandom(8).hex()}"
        self.name = os.path.join(os.path.abspath(tempfile.gettempdir()), name)
        _sweeper.tell(self.name)
        os.mkdir(self.name, 0o700)
        self.cleanup = weakref.finalize(self, shutil.rmtree, self.name,
                                        ignore_errors=True)  # fmt: skip

    def __enter__(self):
        return self.name

    def __exit__(self, *error):
        self.cleanup()


class Sweeper:
    """The process that outlives this one for a moment; started with the first folder,
    and again if it was killed."""

    def __init__(self):
        self.lock, self.process, self.told = threading.Lock(), None, []

    def tell(self, path):
        """Have `path` removed when this process is gone."""
        with self.lock:
            self.told.append(path)
            new = [path]
            if self.process is None or self.process.poll() is not None:
                self._start()
                new = self.told
            self.process.stdin.write(b"".join(os.fsencode(p) + b"\0" for p in new))

    def _start(self):
        # No variable of a job or a test: the sweeper belongs to none, and outlives it.
        kept = ("PATH", "LD_LIBRARY_PATH")
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", os.path.abspath(__file__)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, bufsize=0, start_new_session=True, cwd="/",
            env={name: os.environ[name] for name in kept if name in os.environ},
        )  # fmt: skip

    def leave(self):
        """In a forked process: the pipe is its parent's, whose folders should go."""
        if self.process:
            self.process.stdin.close()
            self.process.returncode = 0  # none of its children
        self.__init__()


def sweep(folders):
    """Remove folders, also those into which somebody writes for a while."""
    until = time.monotonic() + PATIENCE
    while folders and time.monotonic() < until:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.02)
        folders = [folder for folder in folders if os.path.lexists(folder)]


if __name__ == "__main__":
    for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, signal.SIG_IGN)  # meant for the process, which may obey
    sweep([os.fsdecode(path) for path in sys.stdin.buffer.read().split(b"\0")[:-1]])
else:
    _sweeper = Sweeper()
    os.register_at_fork(after_in_child=_sweeper.leave)
