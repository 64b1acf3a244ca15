"""A lock beside files, for one process at a time, which no killed process can leave."""

import fcntl
import os
import socket
from contextlib import suppress


class FileLock:
    """The lock at `path`, a file that is there while the lock is held.

    The operating system lets go of a lock when its process ends, however that
    happens. The file may stay then; it means nothing by itself.
    """

    def __init__(self, path):
        self.path, self.fd = path, None

    def acquire(self, warn=print):
        """Take the lock, or raise `ValueError` that says which process has it.

        Where the file system knows no locks, `warn` is called with a line instead.
        Raises `OSError` when the file can't be made or written.
        """
        while self.fd is None:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            try:
                self._lock(fd, warn)
                # Whoever had it before may just have removed the file that was opened.
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(fd), os.stat(self.path)):
                        self.fd, fd = fd, None
            finally:
                if fd is not None:
                    os.close(fd)
        os.ftruncate(self.fd, 0)
        owner = f"process {os.getpid()} on {socket.gethostname()}"
        os.pwrite(self.fd, owner.encode(), 0)

    def _lock(self, fd, warn):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(fd, 200, 0).decode(errors="replace")
            raise ValueError(f"{owner or 'a process'} holds {self.path}") from None
        except OSError as error:  # an NFS without its lock service, some FUSE
            warn(
                f"warning: {self.path.parent} knows no locks ({error.strerror}): "
                "nothing will stop a second run with this prefix"
            )

    def release(self):
        """Remove the file, and let go of the lock. Does nothing if it is not held."""
        if self.fd is not None:
            with suppress(OSError):
                self.path.unlink()
            os.close(self.fd)
            self.fd = None
