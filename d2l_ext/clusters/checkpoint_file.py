"""One file with arrays and a record, which is whole or not there.

The arrays are an `.npz` as `numpy.savez` lays it out, and nothing else. NumPy's own
reader takes any ZIP file, unpacks what is in it, reserves the memory that a header asks
for and evaluates that header as Python. Here every size is compared with the bytes that
are there before one of them is taken.
"""

import hashlib
import io
import json
import math
import os
import re
import stat
import struct
from pathlib import Path
from uuid import uuid4

import numpy as np

MAGIC = b"d2l_ext checkpoint 1\n"


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


def read(path, most=None):
    """Return `(arrays, record)` from a file that `write` has written.

    `most`: bytes; a larger file is not read. Raises `CheckpointError` when a byte of
    it is missing or another one, and for what is no file; `OSError` when it can't be
    read.
    """
    _, payload = whole(path, most)
    try:
        arrays = {name: _array(name, data) for name, data in _members(payload)}
        return arrays, json.loads(arrays.pop("record").tobytes())
    except (ValueError, KeyError, RecursionError) as error:
        raise CheckpointError(f"{path} holds something else: {error}") from None


def whole(path, most=None):
    """The SHA-256 and the rest of a file, if they belong together. Raises as `read`."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
        raise CheckpointError(f"{path} is {kind}, not a file")
    if most is not None and found.st_size > most:
        raise CheckpointError(
            f"{path} has {found.st_size:,} bytes, which no checkpoint of this run has"
        )
    magic, digest, payload = _take_apart(Path(path).read_bytes())
    if magic != MAGIC:
        raise CheckpointError(f"{path} is not a checkpoint of this version")
    if digest != _sha256(payload) + b"\n":
        raise CheckpointError(f"{path} is damaged: its SHA-256 is not the one inside")
    return digest[:-1].decode(), payload


def _pack(arrays, record):
    if "record" in arrays:
        raise ValueError("the name 'record' is taken: give that array another")
    for name, array in arrays.items():
        if array.dtype.kind not in "biufc":
            raise ValueError(f"array {name!r} is of {array.dtype}: give one of numbers")
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


# ---- Arrays of numbers from an .npz ----

MOST = 10_000  # arrays in a file
#: Of a member of a ZIP file: flags, method, lengths of its name and of what follows.
_MEMBER = struct.Struct("<4s2xHH16xHH")
_ZIP64 = struct.Struct("<HHQQ")  # a tag, its length, the size unpacked and packed
_UTF8 = 0x800  # the flag for a name that is not ASCII
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|][biufc]\d\d?)', "
    rb"'fortran_order': (True|False), 'shape': \(([\d, ]{0,600})\), \} *\n", re.DOTALL
)  # fmt: skip


def _members(packed):
    """Names and contents, up to the table of contents."""
    at = count = 0
    while packed[at : at + 4] == b"PK\x03\x04":
        try:
            _, flags, method, n, m = _MEMBER.unpack_from(packed, at)
            begin = at + _MEMBER.size + n + m
            *_, size, packed_size = _ZIP64.unpack_from(packed, begin - m)
        except struct.error:
            raise ValueError("it ends within a header") from None
        name = packed[begin - m - n : begin - m].decode()
        at, count = begin + size, count + 1
        if flags & ~_UTF8 or method or size != packed_size or m != _ZIP64.size:
            raise ValueError(f"{name!r} is not stored as it is")
        if at > len(packed) or count > MOST:
            raise ValueError(f"{name!r} declares {size:,} bytes, array {count:,}")
        yield name[: -len(".npy")], packed[begin:at]
    if packed[at : at + 4] != b"PK\x01\x02":
        raise ValueError("it is no .npz")


def _array(name, data):
    header = _NPY.match(data)
    if not header:
        raise ValueError(f"{name!r} is no array of numbers")
    try:
        dtype = np.dtype(header[1].decode())
        shape = [int(n) for n in header[3].split(b",") if n.strip()]
        if math.prod(shape) * dtype.itemsize != len(data) - header.end():
            raise ValueError(f"{shape} does not fit {len(data) - header.end():,} bytes")
        order = "F" if header[2] == b"True" else "C"
        found = np.ndarray(shape, dtype, data, header.end(), order=order)
        return found.copy(order)  # one that can be written to
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name!r} is no array of numbers: {error}") from None
