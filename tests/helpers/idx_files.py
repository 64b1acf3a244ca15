"""Small files in the IDX format, and gzip streams that hold a lot, for the tests."""

import gzip
import struct
import zlib

import numpy

from d2l_ext.data import formats


def idx_bytes(array):
    """An unsigned-byte array as the bytes of an IDX file."""
    header = struct.pack(f">{array.ndim + 1}I", 0x0800 + array.ndim, *array.shape)
    return header + array.astype("uint8").tobytes()


def make_arrays(train=20, test=7, seed=0):
    """Images and labels in the order of `formats.IDX_FILES`."""
    rng = numpy.random.RandomState(seed)
    arrays = []
    for n in (train, test):
        arrays += [rng.randint(0, 256, (n, 28, 28)), rng.randint(0, 10, n)]
    return [a.astype("uint8") for a in arrays]


def bomb(head, megabytes):
    """A gzip stream of `head` and so many MiB of zeros, without its checksum.

    4.6 KB for each MiB; the same block again and again, so it takes a moment only.
    """
    packer = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    header = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    return header + start + block * megabytes + packer.flush()


def write_folder(folder, arrays=None, zipped=True):
    """Write the four files into `folder` and return it."""
    for name, array in zip(formats.IDX_FILES, arrays or make_arrays()):
        data = idx_bytes(array)
        path = folder / (name if zipped else name[:-3])
        path.write_bytes(gzip.compress(data) if zipped else data)
    return folder
