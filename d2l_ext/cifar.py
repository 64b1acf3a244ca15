"""CIFAR-10 in its binary version: plain bytes, nothing that runs when it is read."""

import gzip
import tarfile
import zlib
from pathlib import Path

import numpy as np

ARCHIVE = "cifar-10-binary.tar.gz"
FOLDER = "cifar-10-batches-bin"
#: The files of the training part, then that of the test part.
FILES = (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")
SHAPE = (3, 32, 32)  # red, green and blue; rows; columns
RECORD = 1 + 3 * 32 * 32  # a label and an image, a byte per value
NUM_CLASSES = 10
MAX_BYTES = RECORD * 100_000  # of a file; an official one holds 10,000 records
ADVICE = "Get the file again, or name another folder (root=… or D2L_EXT_DATA_DIR)."


def read_folder(folder):
    """Read CIFAR-10 from `folder`: the archive, or its six `.bin` files unpacked.

    Looks for the files in `folder` and in its `cifar-10-batches-bin`, then for
    `cifar-10-binary.tar.gz`, which is read in place: nothing is unpacked to disk.
    Any number of images will do, there is no checksum, and everything else is
    checked.

    Returns uint8 arrays `(train_images, train_labels, test_images, test_labels)`,
    of shapes (n, 3, 32, 32) and (n,).
    Raises `FileNotFoundError` that says what is missing, and `ValueError` for a
    damaged archive, a file that is not whole records of 3,073 bytes or has none,
    and a label above 9.
    """
    files = _read_files(Path(folder).expanduser())
    parts = [_records(files[name], f"{folder}: {name}") for name in FILES]
    train, test = np.concatenate(parts[:-1]), parts[-1]
    return *_images_and_labels(train), *_images_and_labels(test)


def _read_files(folder):
    """The bytes of `FILES`, by name."""
    for place in (folder, folder / FOLDER):
        if any((place / name).is_file() for name in FILES):
            _check_complete(place, [p.name for p in place.iterdir()])
            return {name: _read(place / name) for name in FILES}
    if (folder / ARCHIVE).is_file():
        return _read_archive(folder / ARCHIVE)
    found = "" if folder.is_dir() else "; there is no such folder"
    raise FileNotFoundError(
        f"{folder}: expected {ARCHIVE}, or its files {FILES[0]} … {FILES[-1]}{found}. "
        "The version for Python is not read, because it is pickled: get the binary "
        "version, or name another folder (root=… or D2L_EXT_DATA_DIR)."
    )


def _read(path):
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _read_archive(path):
    files = {}
    try:
        with gzip.open(path) as unzipped, tarfile.open(fileobj=unzipped) as archive:
            for member in archive:
                name = Path(member.name).name
                if name in FILES and member.isfile():
                    files[name] = archive.extractfile(member).read(MAX_BYTES + 1)
            while unzipped.read(1 << 20):  # to the end, where the checksum stands
                pass
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(
            f"{path} is damaged: expected a whole .tar.gz, found {error}. {ADVICE}"
        ) from None
    _check_complete(path, files)
    return files


def _check_complete(place, present):
    missing = [name for name in FILES if name not in present]
    if missing:
        raise FileNotFoundError(f"{place} lacks {', '.join(missing)}. {ADVICE}")


def _records(data, where):
    """The file as an array (n, 3073) of bytes, checked."""
    if not data or len(data) % RECORD or len(data) > MAX_BYTES:
        found = "more" if len(data) > MAX_BYTES else f"{len(data):,}"
        raise ValueError(
            f"{where} holds {found} bytes; expected records of {RECORD:,} bytes, "
            f"from 1 to {MAX_BYTES // RECORD:,}. {ADVICE}"
        )
    records = np.frombuffer(data, np.uint8).reshape(-1, RECORD)
    wrong = np.flatnonzero(records[:, 0] >= NUM_CLASSES)
    if len(wrong):
        raise ValueError(
            f"{where}: label {records[wrong[0], 0]} at position {wrong[0]}, expected "
            f"0 to {NUM_CLASSES - 1}. {ADVICE}"
        )
    return records


def _images_and_labels(records):
    return records[:, 1:].reshape(-1, *SHAPE), records[:, 0]
