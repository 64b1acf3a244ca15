"""Checkpoints that are whole or not there: arrays and a record, in one file each."""

import hashlib
import io
import json
import os
import re
import zipfile
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import numpy as np

MAGIC = b"d2l_ext checkpoint 1\n"
KEEP = 2  # files; the older one is for the case that the newer one is damaged


class CheckpointError(ValueError):
    """A file that is no checkpoint, or no longer the one that was written."""


def write(path, arrays, record):
    """Write `arrays`, a dict of NumPy arrays, and `record`, JSON's types, to `path`.

    The file gets its name when all of it is on the disk: whoever is interrupted
    here, at any moment, leaves the old state of the folder or the new one.
    Layout: a magic line, the SHA-256 of the rest, and an `.npz` without pickles.

    Raises `OSError` when the disk is full or the folder is not writable.
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
    _sync_folder(path.parent)


def read(path):
    """Return `(arrays, record)` from a file that `write` has written.

    Raises `CheckpointError` when a byte of it is missing or another one.
    """
    _, payload = _whole(path)
    try:
        with np.load(io.BytesIO(payload), allow_pickle=False) as npz:
            arrays = {name: npz[name] for name in npz.files}
        return arrays, json.loads(arrays.pop("record").tobytes())
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{path} holds something else: {error}") from None


def _whole(path):
    """The SHA-256 and the rest of a file, if they belong together."""
    magic, digest, payload = _take_apart(Path(path).read_bytes())
    if magic != MAGIC:
        raise CheckpointError(f"{path} is not a checkpoint of this version")
    if digest != _sha256(payload) + b"\n":
        raise CheckpointError(f"{path} is damaged: its SHA-256 is not the one inside")
    return digest[:-1].decode(), payload


def _pack(arrays, record):
    if "record" in arrays:
        raise ValueError("the name 'record' is taken: give that array another")
    packed = io.BytesIO()
    text = np.frombuffer(json.dumps(record).encode(), np.uint8)
    np.savez(packed, record=text, **arrays)
    return packed.getvalue()


def _take_apart(data):
    start = len(MAGIC) + 65  # 64 hexadecimal digits and a line's end
    return data[: len(MAGIC)], data[len(MAGIC) : start], data[start:]


def _sha256(payload):
    return hashlib.sha256(payload).hexdigest().encode()


def _sync_folder(folder):
    """Put the new name on the disk too: it belongs to the folder, not the file."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def step_of(path):
    """The step in the name of a checkpoint."""
    return int(path.stem[-8:])


class Checkpoints:
    """The checkpoints of one run: `PREFIX-00000123.ckpt`, numbered by the step.

    `prefix`: a path whose last part begins the files' names; its folder is made.
    Raises `ValueError` for a prefix that ends without a name, and `OSError` when
    the folder cannot be made.
    """

    def __init__(self, prefix):
        self.folder = Path(os.path.split(prefix)[0] or ".")
        self.name = os.path.split(prefix)[1]
        if self.name in ("", ".", ".."):
            raise ValueError(
                f"the prefix {str(prefix)!r} names a folder: add the beginning of "
                "the files' names, as in runs/lenet"
            )
        self.folder.mkdir(parents=True, exist_ok=True)

    def paths(self):
        """The files that are there, oldest first."""
        pattern = re.compile(re.escape(self.name) + r"-\d{8}\.ckpt")
        found = self.folder.iterdir()
        return sorted(path for path in found if pattern.fullmatch(path.name))

    def save(self, step, arrays, record):
        """Write the checkpoint of `step`, remove all but the last two; its path.

        Raises `OSError` when it cannot be written; those before it stay.
        """
        path = self.folder / f"{self.name}-{step:08d}.ckpt"
        try:
            write(path, arrays, record)
        except OSError as error:
            left = [p.name for p in self.paths()[-1:]]
            raise OSError(
                error.errno, f"{error.strerror or error}: {path} was not written; "
                f"{left[0] if left else 'no earlier one'} is there",
            ) from None  # fmt: skip
        # Later ones are damaged, or this run would have gone on from there.
        for old in [p for p in self.paths() if p <= path][:-KEEP]:
            old.unlink()
        for part in self.folder.glob(".*.part"):  # of a run that was killed
            if part.name.startswith(f".{self.name}-"):
                part.unlink(missing_ok=True)
        return path

    def whole(self):
        """The checkpoints that are not damaged: a dict from step to SHA-256."""
        found = {}
        for path in self.paths():
            with suppress(CheckpointError):
                found[step_of(path)] = _whole(path)[0]
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
                arrays, record = read(path)
            except CheckpointError as error:
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
