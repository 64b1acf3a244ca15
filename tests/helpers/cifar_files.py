"""CIFAR-10's binary files, made up."""

import gzip
import io
import tarfile

import numpy

from d2l_ext.data import formats


def make_files(sizes=(3, 2, 2, 2, 1, 4), seed=0):
    """The six files by name, with so many images each."""
    rng = numpy.random.RandomState(seed)
    files = {}
    for name, n in zip(formats.CIFAR_FILES, sizes):
        records = rng.randint(0, 256, (n, formats.RECORD))
        records[:, 0] = rng.randint(0, 10, n)
        files[name] = records.astype("uint8").tobytes()
    return files


def write_files(folder, files=None):
    for name, content in (files or make_files()).items():
        (folder / name).write_bytes(content)
    return folder


def write_archive(folder, files=None):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in (files or make_files()).items():
            member = tarfile.TarInfo(f"{formats.CIFAR_FOLDER}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    path = folder / formats.CIFAR_ARCHIVE
    path.write_bytes(gzip.compress(packed.getvalue()))
    return path


def header(name, size, kind=b"0"):
    """A member's header of 512 bytes; its size may be anything."""
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)
