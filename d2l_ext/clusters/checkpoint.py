"""The checkpoints of a run: the last two are kept, and the last whole one is loaded."""

import errno
import fcntl
import os
import re
import socket
from contextlib import suppress
from pathlib import Path

from .checkpoint_file import MAGIC, CheckpointError, read, whole, write

__all__ = ["MAGIC", "CheckpointError", "Checkpoints", "read", "step_of", "write"]
KEEP = 2  # files; the older one is for the case that the newer one is damaged


def step_of(path):
    """The step in the name of a checkpoint."""
    return int(path.stem[-8:])


class Checkpoints:
    """The checkpoints of one run: `PREFIX-00000123.ckpt`, numbered by the step.

    `prefix`: a path whose last part begins the files' names; its folder is made.
    `most`: bytes of a file that may be read, default any number. Raises `ValueError`
    for a prefix that ends without a name, and `OSError` when the folder cannot be made.
    """

    def __init__(self, prefix, most=None):
        self.folder = Path(os.path.split(prefix)[0] or ".")
        self.name = os.path.split(prefix)[1]
        if self.name in ("", ".", ".."):
            raise ValueError(
                f"the prefix {str(prefix)!r} names a folder: add the beginning of "
                "the files' names, as in runs/lenet"
            )
        self.most = most
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self.folder / f".{self.name}.lock")

    def begin(self, need=0, warn=print):
        """Before this process saves, until `end`: let no other one save with `prefix`.

        `need`: bytes of a checkpoint, at least. `warn`: told when the folder knows no
        locks. Raises `ValueError` when another process is saving, and `OSError` when
        the folder can't be written to or is full.
        """
        try:
            self._lock.acquire(warn)
            test = self.folder / f"{self.name}-00000000.test"
            write(test, {}, {})
            test.unlink()
            found = os.statvfs(self.folder)
            free = found.f_bavail * found.f_frsize
            if found.f_blocks and free < need:  # some file systems know no blocks
                raise OSError(errno.ENOSPC, f"only {free:,} of {need:,} bytes are free")
        except OSError as error:
            raise OSError(
                error.errno, f"{error.strerror or error}: no checkpoint can be written "
                f"as {self.folder / self.name}-00000000.ckpt",
            ) from None  # fmt: skip

    def end(self):
        """Let others save with this prefix."""
        self._lock.release()

    def paths(self):
        """The files that are there, oldest first."""
        return sorted(self._found(r"{}-\d{{8}}\.ckpt"))

    def _found(self, pattern):
        name = re.compile(pattern.format(re.escape(self.name)))
        return [path for path in self.folder.iterdir() if name.fullmatch(path.name)]

    def save(self, step, arrays, record):
        """Write the checkpoint of `step`, remove all but the last two; its path.

        Raises `OSError` when it cannot be written; those before it stay.
        """
        path = self.folder / f"{self.name}-{step:08d}.ckpt"
        try:
            if os.path.isdir(path):  # `load` passed it over; no file replaces it
                path.rename(f"{path}.aside")
            write(path, arrays, record)
        except OSError as error:
            left = [p.name for p in self.paths()[-1:]]
            raise OSError(
                error.errno, f"{error.strerror or error}: {path} was not written; "
                f"{left[0] if left else 'no earlier one'} is there",
            ) from None  # fmt: skip
        # Later ones are damaged, or this run would have gone on from there.
        for old in [p for p in self.paths() if p <= path and os.path.isfile(p)][:-KEEP]:
            old.unlink()
        # Of a run with this prefix that was killed, and no other's.
        for part in self._found(r"\.{}-\d{{8}}\.(ckpt|test)\.[0-9a-f]+\.part"):
            with suppress(OSError):  # gone, or a folder
                part.unlink()
        return path

    def wait(self):
        """Nothing to wait for: `save` returns when the file is on the disk."""

    def whole(self):
        """The checkpoints that are not damaged: a dict from step to SHA-256."""
        found = {}
        for path in self.paths():
            with suppress(CheckpointError, OSError):
                found[step_of(path)] = whole(path, self.most)[0]
        return found

    def load(self, warn=print, steps=None):
        """Return `(path, arrays, record)` of the last whole checkpoint, or None.

        `warn` is called with a line for each damaged one that was passed over.
        `steps`: consider only the checkpoints of these, and the damaged ones.
        Raises `CheckpointError` when there are some and all are damaged.
        """
        problems = []
        for path in reversed(self.paths()):
            try:
                arrays, record = read(path, self.most)
            except (CheckpointError, OSError) as error:
                problems.append(str(error))
                continue
            if steps is not None and step_of(path) not in steps:
                problems.append(f"not all workers have {path}")
                continue
            for problem in problems:
                warn(f"warning: {problem}; going on from {path.name}")
            return path, arrays, record
        if problems:
            raise CheckpointError(
                f"no checkpoint can be used: {'; '.join(problems)}. Remove them to "
                "start anew."
            )
        return None


class FileLock:
    """The lock at `path`: for one process at a time, and a killed one leaves it.

    The file is there while the lock is held. The operating system lets go of a lock
    when its process ends, however that happens. The file may stay then; it means
    nothing by itself.
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
