"""Readers of MNIST's and CIFAR-10's files: plain bytes, verified before use.

Reading executes nothing in them, and unpacks no more than a limit allows.
"""

import gzip
import math
import os
import struct
import tarfile
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np

#: Files in IDX format: images and labels of the training part, then of the test part.
IDX_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
KINDS = {1: "labels", 3: "images"}  # by the number of dimensions
#: The limit per file; the largest such set, EMNIST's digits, has 240,000 in one.
MAX_IMAGES = 500_000

#: CIFAR-10: the training part, then the test part, and the archive that has them.
CIFAR_FILES = (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")
CIFAR_FOLDER = "cifar-10-batches-bin"
CIFAR_ARCHIVE = "cifar-10-binary.tar.gz"
RECORD = 1 + 3 * 32 * 32  # a label; red, green and blue, row by row; a byte per value
MAX_RECORDS = 100_000  # the limit for all files; the official ones hold 60,000
#: The limit for the unpacked archive; the official one has 184 MB.
MAX_BYTES = MAX_RECORDS * RECORD + (1 << 24)
BLOCK = 512  # bytes of a tar header; members are padded to a multiple of it

NUM_CLASSES = 10
ANOTHER = "name another folder (root=… or D2L_EXT_DATA_DIR)"
ADVICE = f"Get the file again, or {ANOTHER}."


def read_idx(folder):
    """Read the four files of an MNIST-like data set, `IDX_FILES`, from `folder`.

    Each may be gzipped or unpacked (without `.gz`); if both exist, the gzipped one is
    read. The number of images is free up to `MAX_IMAGES`, there is no checksum,
    and everything else is verified.

    Returns uint8 arrays `(train_images, train_labels, test_images, test_labels)`, of
    shapes (n, 1, 28, 28) and (n,). Raises `FileNotFoundError` that lists what is
    missing, and `ValueError` that names the file, what was expected and what was found:
    a truncated or corrupt gzip stream, a wrong magic number, images that are not 28×28,
    none at all or too many, fewer or more bytes than declared, different numbers of
    images and labels, a label above 9.
    """
    folder = Path(os.path.expanduser(folder))
    either = [(folder / name, folder / name[:-3]) for name in IDX_FILES]
    paths = [next(filter(Path.is_file, pair), None) for pair in either]
    missing = [name for name, path in zip(IDX_FILES, paths) if path is None]
    if missing:
        raise _lacks(folder, f"{', '.join(missing)} (gzipped or unpacked)")
    parts = []
    for images_path, labels_path in (paths[:2], paths[2:]):
        images, labels = _read_idx(images_path, 28, 28), _read_idx(labels_path)
        if len(images) != len(labels):
            raise ValueError(
                f"{images_path} holds {len(images)} images and {labels_path.name} "
                f"{len(labels)} labels: they do not belong together. {ADVICE}"
            )
        _check_labels(labels_path, labels)
        parts += [images[:, None], labels]
    return tuple(parts)


def read_cifar(folder):
    """Read CIFAR-10's binary version from `folder`: its six files, or the archive.

    Looks for `CIFAR_FILES` in `folder` and in its `CIFAR_FOLDER`, then for
    `CIFAR_ARCHIVE`, which is read in place: nothing is unpacked to disk. Any number of
    images up to `MAX_RECORDS` is accepted, there is no checksum, and everything else is
    verified.

    Returns uint8 arrays `(train_images, train_labels, test_images, test_labels)`, of
    shapes (n, 3, 32, 32) and (n,). Raises `FileNotFoundError` that names the
    missing files, and `ValueError` for a corrupt or too large archive, a file that is
    empty or does not consist of whole records of 3,073 bytes, too many records, and a
    label above 9.
    """
    place, files = _find_cifar(Path(os.path.expanduser(folder)))
    records = [files[name].reshape(-1, RECORD) for name in CIFAR_FILES]
    for name, of_file in zip(CIFAR_FILES, records):
        _check_labels(f"{place}: {name}", of_file[:, 0])
    train, test = np.concatenate(records[:-1]), records[-1]
    images = [part[:, 1:].reshape(-1, 3, 32, 32) for part in (train, test)]
    return images[0], train[:, 0], images[1], test[:, 0]


def _lacks(folder, what):
    found = "there is no such folder"
    if folder.is_dir():
        names = sorted(path.name for path in folder.iterdir())
        found = f"it holds {', '.join(names[:8]) or 'nothing'}"
    return FileNotFoundError(
        f"{folder} lacks {what}; {found}. Put the files there, or {ANOTHER}."
    )


def _check_labels(where, labels):
    wrong = np.flatnonzero(labels >= NUM_CLASSES)
    if len(wrong):
        raise ValueError(
            f"{where}: label {labels[wrong[0]]} at position {wrong[0]}, expected 0 to "
            f"{NUM_CLASSES - 1}. {ADVICE}"
        )


@contextmanager
def _unpacked(path):
    """Open the file, gunzipped if need be; `ValueError` inside if it is corrupt.

    Decides by content, not by name: browsers unpack a .gz file and keep its name.
    """
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    # gzip would scan the zeros after its data byte by byte.
    if is_gzip and (size := path.stat().st_size) > 28 * 28 * MAX_IMAGES:
        raise ValueError(f"{path} is too large, with {size:,} bytes. {ADVICE}")
    try:
        with gzip.open(path) if is_gzip else path.open("rb") as file:
            yield file
    except (gzip.BadGzipFile, zlib.error, EOFError, tarfile.TarError) as error:
        raise ValueError(f"{path} is truncated or corrupt: {error}. {ADVICE}") from None


# ---- IDX ----


def _read_idx(path, *of_each):
    """Return the array in an IDX file, of shape (n, *of_each)."""
    with _unpacked(path) as file:
        shape = _declared(path, file.read(8 + 4 * len(of_each)), of_each)
        # Reading one byte past the data makes gzip verify its checksum.
        data = file.read(math.prod(shape) + 1)
    if len(data) != math.prod(shape):
        found = f"only {len(data):,}" if len(data) < math.prod(shape) else "more"
        raise ValueError(
            f"{path} declares {shape[0]:,} {KINDS[len(shape)]}, that is "
            f"{math.prod(shape):,} bytes, and holds {found}. {ADVICE}"
        )
    return np.frombuffer(data, np.uint8).reshape(shape)


def _declared(path, header, of_each):
    """Return the shape that the header of an IDX file declares, if it is (n, *of_each).

    Its magic number is 0x08, for unsigned bytes, and the number of dimensions.
    """
    ndim = 1 + len(of_each)
    if len(header) < 4 + 4 * ndim:
        raise EOFError("it ends within its header")
    magic, *shape = struct.unpack(f">{1 + ndim}I", header)
    if magic != 0x800 + ndim:
        kind = KINDS.get(magic - 0x800, "not an IDX file")
        raise ValueError(
            f"{path}: expected the magic number 0x{0x800 + ndim:08x} ({KINDS[ndim]}), "
            f"found 0x{magic:08x} ({kind}). {ADVICE}"
        )
    if tuple(shape[1:]) != of_each:
        found, wanted = ("×".join(map(str, s)) for s in (shape[1:], of_each))
        raise ValueError(
            f"{path}: expected images of {wanted}, found {found}. {ADVICE}"
        )
    if not 0 < shape[0] <= MAX_IMAGES:
        raise ValueError(
            f"{path} declares {shape[0]:,} {KINDS[ndim]}; expected 1 to "
            f"{MAX_IMAGES:,}. {ADVICE}"
        )
    return shape


# ---- CIFAR-10 ----


def _find_cifar(folder):
    """Return the place where `CIFAR_FILES` were found, and their bytes by name."""
    for place in (folder, folder / CIFAR_FOLDER):
        paths = {n: place / n for n in CIFAR_FILES if (place / n).is_file()}
        if paths:
            _check_records(place, {n: path.stat().st_size for n, path in paths.items()})
            return place, {n: np.fromfile(path, np.uint8) for n, path in paths.items()}
    archive = folder / CIFAR_ARCHIVE
    if not archive.is_file():
        raise _lacks(
            folder,
            f"{CIFAR_ARCHIVE}, or its files {CIFAR_FILES[0]} … {CIFAR_FILES[-1]} "
            "(the version for Python is pickled, and not read)",
        )
    members = _members(archive)
    _check_records(archive, {name: len(data) for name, data in members.items()})
    return archive, members


def _check_records(place, sizes):
    """Check that all files are there, with whole records, and not too many."""
    missing = [name for name in CIFAR_FILES if name not in sizes]
    if missing:
        raise FileNotFoundError(f"{place} lacks {', '.join(missing)}. {ADVICE}")
    for name in CIFAR_FILES:
        if not sizes[name] or sizes[name] % RECORD:
            raise ValueError(
                f"{place}: {name} holds {sizes[name]:,} bytes; expected whole records "
                f"of {RECORD:,} bytes, at least one. {ADVICE}"
            )
    if sum(sizes.values()) > RECORD * MAX_RECORDS:
        raise ValueError(
            f"{place} holds {sum(sizes.values()) // RECORD:,} records; at most "
            f"{MAX_RECORDS:,} are read. {ADVICE}"
        )


def _members(path):
    """Return the bytes of `CIFAR_FILES` in the archive `path`, by name.

    Reads each member by its plain header; `tarfile` would also obey extended headers,
    which such short names do not need.
    """
    with _unpacked(path) as file:
        content = np.frombuffer(file.read(MAX_BYTES + 1), np.uint8)
        if len(content) > MAX_BYTES:
            raise ValueError(f"{path} holds more than {MAX_BYTES:,} bytes. {ADVICE}")
        members, at = {}, 0
        while any(header := content[at : at + BLOCK].tobytes()):
            member = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
            begin, name = at + BLOCK, Path(member.name).name
            at = begin + member.size + -member.size % BLOCK
            if member.size < 0 or at > len(content):
                raise EOFError(f"{name!r} declares {member.size:,} bytes")
            if member.isreg() and name in CIFAR_FILES:
                members[name] = content[begin : begin + member.size]
    return members
