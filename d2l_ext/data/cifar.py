"""CIFAR-10 in its binary version: plain bytes, nothing that runs when it is read."""

import gzip
import os
import tarfile
import zlib
from pathlib import Path

import numpy as np

from .idx import ADVICE, check_labels, read_at_most

ARCHIVE = "cifar-10-binary.tar.gz"
FOLDER = "cifar-10-batches-bin"
#: The files of the training part, then that of the test part.
FILES = (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")
SHAPE = (3, 32, 32)  # red, green and blue; rows; columns
RECORD = 1 + 3 * 32 * 32  # a label and an image, a byte per value
NUM_CLASSES = 10
MAX_RECORDS = 100_000  # in all files; the official ones hold 60,000
#: Of an archive; the official one has eight members and is 184 MB unpacked.
MAX_MEMBERS = 1_000
MAX_BYTES = MAX_RECORDS * RECORD + (1 << 24)
BLOCK = 512  # of tar: a header, and what the content of each member is filled up to
#: Members that are a header only, whatever size it states.
WITHOUT_CONTENT = (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE,
                   tarfile.DIRTYPE, tarfile.FIFOTYPE)  # fmt: skip


def read_folder(folder):
    """Read CIFAR-10 from `folder`: the archive, or its six `.bin` files unpacked.

    Looks for the files in `folder` and in its `cifar-10-batches-bin`, then for
    `cifar-10-binary.tar.gz`, which is read in place: nothing is unpacked to disk.
    Any number of images up to `MAX_RECORDS` will do, there is no checksum, and
    everything else is checked, each size before its bytes are read.

    Returns uint8 arrays `(train_images, train_labels, test_images, test_labels)`, of
    shapes (n, 3, 32, 32) and (n,). Raises `FileNotFoundError` that says what is
    missing, and `ValueError` for a damaged archive or a bomb, a file that is not whole
    records of 3,073 bytes or has none, and a label above 9.
    """
    files = _read_files(Path(os.path.expanduser(folder)))
    parts = []
    for name in FILES:
        records = files[name].reshape(-1, RECORD)
        check_labels(f"{folder}: {name}", records[:, 0], NUM_CLASSES)
        parts.append(records)
    both = np.concatenate(parts[:-1]), parts[-1]
    images = [records[:, 1:].reshape(-1, *SHAPE) for records in both]
    return images[0], both[0][:, 0], images[1], both[1][:, 0]


def _read_files(folder):
    """The bytes of `FILES`, by name."""
    for place in (folder, folder / FOLDER):
        paths = {name: place / name for name in FILES if (place / name).is_file()}
        if paths:
            _check_complete(place, paths)
            sizes = {name: path.stat().st_size for name, path in paths.items()}
            _check_sizes(place, sizes)
            for name, path in paths.items():
                with path.open("rb") as file:
                    paths[name] = read_at_most(file, sizes[name])
            return paths
    if (folder / ARCHIVE).is_file():
        return _read_archive(folder / ARCHIVE)
    found = "" if folder.is_dir() else "; there is no such folder"
    raise FileNotFoundError(
        f"{folder}: expected {ARCHIVE}, or its files {FILES[0]} … {FILES[-1]}{found}. "
        "The version for Python is not read, because it is pickled: get the binary "
        "version, or name another folder (root=… or D2L_EXT_DATA_DIR)."
    )


def _read_archive(path):
    try:
        with gzip.open(path) as unzipped:
            files = _read_members(unzipped, path)
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(
            f"{path} is damaged: expected a whole .tar.gz, found {error}. {ADVICE}"
        ) from None
    _check_complete(path, files)
    return files


def _read_members(unzipped, path):
    """The bytes of `FILES`, each by its own header.

    `tarfile` would also unpack extended headers, of any size, and do as they say.
    Names as short as these need none, so they are passed over like other members.
    """
    files, sizes, left = {}, {}, MAX_BYTES
    for _ in range(MAX_MEMBERS):
        header = unzipped.read(BLOCK)
        if not header:
            raise EOFError("no end of the archive")
        if not any(header):
            break
        member = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        name = Path(member.name).name
        size = 0 if member.type in WITHOUT_CONTENT else member.size
        filled_up = size + -size % BLOCK
        left -= BLOCK + filled_up
        if size < 0 or left < 0:
            raise ValueError(
                f"{path}: {name!r} declares {size:,} bytes; expected 0 at least, and "
                f"{MAX_BYTES:,} at most for all members. {ADVICE}"
            )
        wanted = name in FILES and member.type in (tarfile.REGTYPE, tarfile.AREGTYPE)
        if wanted:
            sizes[name] = size
            _check_sizes(path, sizes)
        content = read_at_most(unzipped, filled_up)
        if len(content) < filled_up:
            raise EOFError(f"only {len(content):,} of the {size:,} bytes of {name!r}")
        if wanted:
            files[name] = content[:size]
    else:
        raise ValueError(f"{path} holds {MAX_MEMBERS:,} members or more. {ADVICE}")
    # To the end, where the checksum stands.
    if len(read_at_most(unzipped, left + 1)) > left:
        raise ValueError(f"{path} holds more than {MAX_BYTES:,} bytes. {ADVICE}")
    return files


def _check_complete(place, present):
    missing = [name for name in FILES if name not in present]
    if missing:
        raise FileNotFoundError(f"{place} lacks {', '.join(missing)}. {ADVICE}")


def _check_sizes(place, sizes):
    """`sizes`: bytes by name. Each must be whole records, and all not too many."""
    for name, size in sizes.items():
        if not size or size % RECORD:
            raise ValueError(
                f"{place}: {name} holds {size:,} bytes; expected whole records of "
                f"{RECORD:,} bytes, one at least. {ADVICE}"
            )
    if sum(sizes.values()) > RECORD * MAX_RECORDS:
        raise ValueError(
            f"{place}: {', '.join(sizes)} hold {sum(sizes.values()) // RECORD:,} "
            f"records; at most {MAX_RECORDS:,} are read. {ADVICE}"
        )
