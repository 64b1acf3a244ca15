"""The checkpoints of a run: each is written atomically, and the last two are kept.

A checkpoint is one file with arrays and a record: a line of JSON describes the content,
and the bytes of the arrays follow. Nothing in it is executed, unlike in a pickle, and
every size is compared with the bytes in the file before they are read.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import socket
import stat
from contextlib import suppress
from pathlib import Path
from reprlib import repr as short
from uuid import uuid4

import numpy as np

MAGIC = b"d2l_ext checkpoint 2\n"
KEEP = 2  # checkpoints; the older one is used if the newer one is damaged


class CheckpointError(ValueError):
    """A file that is not a checkpoint, or is damaged."""


def write(path, arrays, record):
    """Write `arrays`, a dict of NumPy arrays, and `record`, of JSON types, to `path`.

    The file is renamed once all of it is on the disk: an interruption at any moment
    leaves the old file or the new one.
    Layout: a magic line, the SHA-256 of the rest, a line of JSON with the record and
    each array's type and shape, and their bytes.

    Raises `OSError` when the disk is full or the folder is not writable, and
    `ValueError` for arrays that do not hold numbers.
    """
    path = Path(path)
    payload = _pack(arrays, record)
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            file.write(MAGIC + _sha256(payload) + b"\n")
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)


def read(path, most=None):
    """Return `(arrays, record)` from a file that `write` has written.

    `most`: bytes; a larger file is not read. Raises `CheckpointError` if a byte is
    missing or changed, or the path is not a file; `OSError` if it cannot be read.
    """
    _, payload = verified(path, most)
    try:
        return _unpack(payload)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} has unexpected contents: {error}") from None


def verified(path, most=None):
    """Return the SHA-256 and rest of a file, if they match. Raises as `read` does."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
        raise CheckpointError(f"{path} is {kind}, not a file")
    if most is not None and found.st_size > most:
        raise CheckpointError(
            f"{path} has {found.st_size:,} bytes; those of this run have at most "
            f"{most:,}"
        )
    with open(path, "rb") as file:
        magic, digest, payload = file.read(len(MAGIC)), file.read(65), file.read()
    if magic != MAGIC:
        raise CheckpointError(f"{path} is not a checkpoint of this version")
    if digest != _sha256(payload) + b"\n":
        raise CheckpointError(f"{path} is damaged: its SHA-256 is not the one inside")
    return digest[:-1].decode(), payload


def _pack(arrays, record):
    for name, array in arrays.items():
        if array.dtype.kind not in "biufc":
            raise ValueError(f"array {name!r} has dtype {array.dtype}: give numbers")
    told = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    line = json.dumps({"record": record, "arrays": told}).encode()
    return b"".join([line, b"\n", *(array.tobytes() for array in arrays.values())])


def _unpack(payload):
    at = payload.index(b"\n") + 1
    told, arrays = json.loads(payload[:at]), {}
    for name, of in told["arrays"].items():
        arrays[name] = _array(name, of, payload, at)
        at += arrays[name].nbytes
    if at < len(payload):
        raise ValueError(f"{len(payload) - at:,} bytes follow the last array")
    return arrays, told["record"]


def _array(name, of, payload, at):
    """Return a copy of the bytes from `at` on, if there are enough for `of`."""
    try:
        kind, shape = of
        if not re.fullmatch(r"[<>|][biufc]\d\d?", kind):
            raise ValueError("not a numeric type")
        found = np.ndarray(shape, kind, payload, at)
        if [*found.shape] != shape:  # NumPy takes -1 for "all the rest"
            raise ValueError("not a shape")
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name!r} is {short(of)}: {error}") from None
    return found.copy()


def _sha256(payload):
    return hashlib.sha256(payload).hexdigest().encode()


def sync_folder(folder):
    """Write the new name to the disk, too: it belongs to the folder, not the file."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


# ---- A run's checkpoints ----


def step_of(path):
    """Return the step in the name of a checkpoint."""
    return int(path.stem[-8:])


class Checkpoints:
    """The checkpoints of one run: `PREFIX-00000123.ckpt`, numbered by the step.

    Steps have at most eight digits: a later one would be saved, but never found.
    `prefix`: a path whose last part begins the files' names; its folder is created.
    `most`: the largest file that is read, in bytes; default no limit. Raises
    `ValueError` for a prefix that ends without a name, and `OSError` if the folder
    cannot be created.
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
        self.skipped = set()  # paths that `load` could not use

    def begin(self, need=0, warn=print):
        """Lock `prefix` for this process, until `end`; call it before saving.

        `need`: the minimum bytes of a checkpoint. `warn`: called if the file
        system has no locks. Raises `ValueError` if another process is saving, and
        `OSError` if the folder is full or not writable.
        """
        try:
            self._lock.acquire(warn)
            test = self.folder / f"{self.name}-00000000.test"
            write(test, {}, {})
            test.unlink()
            found = os.statvfs(self.folder)
            free = found.f_bavail * found.f_frsize
            if found.f_blocks and free < need:  # some file systems report no blocks
                raise OSError(errno.ENOSPC, f"only {free:,} of {need:,} bytes are free")
        except OSError as error:
            self._lock.release()
            raise OSError(
                error.errno, f"{error.strerror or error}: no checkpoint can be written "
                f"as {self.folder / self.name}-00000000.ckpt",
            ) from None

    def end(self):
        """Release the lock of this prefix."""
        self._lock.release()

    def paths(self):
        """Return the paths of the existing files, oldest first."""
        return sorted(self._found(r"{}-\d{{8}}\.ckpt"))

    def _found(self, pattern):
        name = re.compile(pattern.format(re.escape(self.name)))
        return [path for path in self.folder.iterdir() if name.fullmatch(path.name)]

    def save(self, step, arrays, record):
        """Write the checkpoint of `step`; return its path.

        Of those before it, one stays, with those that `load` skipped, and later ones.
        Raises `OSError` if it cannot be written; earlier ones stay.
        """
        path = self.folder / f"{self.name}-{step:08d}.ckpt"
        try:
            if os.path.isdir(path):  # `load` skipped it; no file replaces it
                path.rename(f"{path}.aside")
            write(path, arrays, record)
        except OSError as error:
            left = [p.name for p in self.paths()[-1:]]
            raise OSError(
                error.errno, f"{error.strerror or error}: {path} was not written; "
                f"{left[0] if left else 'no earlier one'} is there",
            ) from None
        self.skipped.discard(path)
        usable = [p for p in self.paths() if p <= path and p not in self.skipped
                  and os.path.isfile(p)]
        for old in usable[:-KEEP]:
            old.unlink()
        # Left by a killed run with this prefix, and by no other.
        for part in self._found(r"\.{}-\d{{8}}\.(ckpt|test)\.[0-9a-f]+\.part"):
            with suppress(OSError):  # gone, or a folder
                part.unlink()
        return path

    def wait(self):
        """Do nothing: `save` returns when the file is on the disk."""

    def whole(self):
        """Return the intact checkpoints: a dict from step to SHA-256."""
        found = {}
        for path in self.paths():
            with suppress(CheckpointError, OSError):
                found[step_of(path)] = verified(path, self.most)[0]
        return found

    def load(self, warn=print, steps=None):
        """Return `(path, arrays, record)` of the last intact checkpoint, or None.

        `warn` is called with a line for each one that is skipped. `steps`: those whose
        checkpoints may be used, default all. Raises `CheckpointError` if there are
        checkpoints and none can be used.
        """
        problems = []
        for path in reversed(self.paths()):
            self.skipped.add(path)
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
            self.skipped.discard(path)
            return path, arrays, record
        if problems:
            raise CheckpointError(
                f"no checkpoint can be used: {'; '.join(problems)}. Remove them to "
                "start anew."
            )
        return None


class FileLock:
    """The lock at `path`, for one process at a time.

    The file exists while the lock is held. The operating system releases a lock when
    its process and the children that it forked have ended, however that happens. The
    file may remain; it means nothing by itself.
    """

    def __init__(self, path):
        self.path, self.fd = path, None

    def acquire(self, warn=print):
        """Acquire the lock, or raise a `ValueError` that names its owner.

        If the file system has no locks, `warn` is called with a line instead. Raises
        `OSError` if the file cannot be created or written.
        """
        while self.fd is None:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            try:
                self._lock(fd, warn)
                # The previous owner may just have removed the file that was opened.
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
            raise ValueError(f"{owner or 'a process'} holds {self.path}: end it, or "
                             "use another prefix") from None
        except OSError as error:  # an NFS without its lock service, some FUSE
            warn(
                f"warning: {self.path.parent} supports no locks ({error.strerror}): "
                "nothing will stop a second run with this prefix"
            )

    def release(self):
        """Remove the file and release the lock. Does nothing if it is not held."""
        if self.fd is not None:
            with suppress(OSError):
                self.path.unlink()
            os.close(self.fd)
            self.fd = None
