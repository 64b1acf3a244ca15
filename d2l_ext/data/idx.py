"""Images and labels in the IDX format of MNIST, checked before they are believed."""

import gzip
import math
import os
import struct
import zlib
from pathlib import Path

import numpy as np

#: Images and labels of the training part, then of the test part.
FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
#: Two zero bytes, 0x08 for unsigned bytes, and the number of dimensions.
MAGIC = {1: 0x00000801, 3: 0x00000803}
KINDS = {1: "labels", 3: "images"}
#: In a file; the largest set of this kind, EMNIST's digits, has 240,000.
MAX_IMAGES = 500_000
CHUNK = 1 << 20
ADVICE = "Get the file again, or name another folder (root=… or D2L_EXT_DATA_DIR)."


def read_folder(folder, num_classes=10):
    """Read the four files of an MNIST-like data set from `folder`.

    Each may be gzipped (`FILES`) or unpacked (without `.gz`); where both are
    there, the gzipped one is read. Any number of images up to `MAX_IMAGES` will do,
    there is no checksum, and everything else is checked, the declared sizes before
    the images are unpacked.

    Returns uint8 arrays `(train_images, train_labels, test_images, test_labels)`, of
    shapes (n, 28, 28) and (n,). Raises `FileNotFoundError` that lists what is missing,
    and `ValueError` for a file that `read_images` or `read_labels` refuses, images and
    labels of unequal number, and a label that is not in 0 … `num_classes` - 1.
    """
    paths = _find(Path(os.path.expanduser(folder)))
    parts = []
    for images_path, labels_path in (paths[:2], paths[2:]):
        images, labels = read_images(images_path), read_labels(labels_path)
        if len(images) != len(labels):
            raise ValueError(
                f"{images_path} holds {len(images)} images and {labels_path.name} "
                f"{len(labels)} labels: they do not belong together. {ADVICE}"
            )
        check_labels(labels_path, labels, num_classes)
        parts += [images, labels]
    return tuple(parts)


def read_images(path, shape=(28, 28)):
    """Read an IDX file of grey images: uint8, (n, height, width).

    Raises `ValueError` that names the file, what was expected and what was
    found: a damaged gzip stream, another magic number, images that are not
    `shape` pixels, no images at all or too many, fewer or more bytes than declared.
    """
    return _read(Path(path), tuple(shape))


def read_labels(path):
    """Read an IDX file of labels: uint8, (n,). Raises as `read_images` does."""
    return _read(Path(path), ())


def check_labels(where, labels, num_classes):
    """Raise `ValueError` for a label that is not in 0 … `num_classes` - 1."""
    wrong = np.flatnonzero(labels >= num_classes)
    if len(wrong):
        raise ValueError(
            f"{where}: label {labels[wrong[0]]} at position {wrong[0]}, expected 0 to "
            f"{num_classes - 1}. {ADVICE}"
        )


def _find(folder):
    if not folder.is_dir():
        found = "that is a file" if folder.exists() else "there is no such folder"
        raise FileNotFoundError(
            f"{folder}: expected a folder with {', '.join(FILES)}; {found}."
        )
    paths = [
        next((p for p in (folder / name, folder / name[:-3]) if p.is_file()), None)
        for name in FILES
    ]
    missing = [name for name, path in zip(FILES, paths) if path is None]
    if missing:
        present = ", ".join(sorted(p.name for p in folder.iterdir())[:8]) or "nothing"
        raise FileNotFoundError(
            f"{folder} lacks {', '.join(missing)} (gzipped or unpacked); it holds "
            f"{present}. Put the missing files there, or name another folder "
            "(root=… or D2L_EXT_DATA_DIR)."
        )
    return paths


def _read(path, of_each):
    try:
        with _open(path) as file:
            shape = _read_header(file, path, of_each)
            # To ask for one byte beyond the data makes gzip compare its checksum.
            data = read_at_most(file, math.prod(shape) + 1)
    except EOFError:
        raise ValueError(
            f"{path} is cut off: its gzip stream ends too early. {ADVICE}"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is damaged: expected a whole gzip stream, found {error}. {ADVICE}"
        ) from None
    if len(data) != math.prod(shape):
        found = f"only {len(data):,}" if len(data) < math.prod(shape) else "more"
        raise ValueError(
            f"{path} declares {shape[0]:,} {KINDS[len(shape)]}, that is "
            f"{math.prod(shape):,} bytes, and holds {found}. {ADVICE}"
        )
    return data.reshape(shape)


def _open(path):
    """By content, not by name: browsers unpack a .gz file and keep its name."""
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if is_gzip else path.open("rb")


def _read_header(file, path, of_each):
    """The declared shape, when that of each image is the one expected."""
    ndim = 1 + len(of_each)
    header = file.read(4 + 4 * ndim)
    magic = int.from_bytes(header[:4], "big")
    if len(header) < 4 or magic != MAGIC[ndim]:
        kind = next((KINDS[n] for n, m in MAGIC.items() if m == magic), "no IDX file")
        raise ValueError(
            f"{path}: expected the magic number 0x{MAGIC[ndim]:08x} ({KINDS[ndim]}), "
            f"found 0x{header[:4].hex()} ({kind}). {ADVICE}"
        )
    if len(header) < 4 + 4 * ndim:
        raise ValueError(f"{path} is cut off within its header. {ADVICE}")
    shape = struct.unpack(f">{ndim}I", header[4:])
    if shape[0] == 0:
        raise ValueError(f"{path}: expected {KINDS[ndim]}, found none. {ADVICE}")
    if shape[1:] != of_each:
        found, wanted = ("×".join(map(str, s)) for s in (shape[1:], of_each))
        raise ValueError(
            f"{path}: expected images of {wanted}, found {found}. {ADVICE}"
        )
    if shape[0] > MAX_IMAGES:
        raise ValueError(
            f"{path} declares {shape[0]:,} {KINDS[ndim]}; at most {MAX_IMAGES:,} are "
            f"read. {ADVICE}"
        )
    return shape


def read_at_most(file, size):
    """The next bytes of `file`, `size` unless it ends before: uint8, (n,).

    Memory is taken as bytes arrive, and once.
    """
    data, filled = np.empty(size, np.uint8), 0
    while count := file.readinto(data[filled : filled + CHUNK]):
        filled += count
    return data[:filled]
