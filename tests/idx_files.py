"""Small files in the IDX format, for the tests."""

import gzip
import struct

import numpy

from d2l_ext import idx


def idx_bytes(array):
    """An unsigned-byte array as the bytes of an IDX file."""
    header = struct.pack(f">{array.ndim + 1}I", 0x0800 + array.ndim, *array.shape)
    return header + array.astype("uint8").tobytes()


def make_arrays(train=20, test=7, seed=0):
    """Images and labels in the order of `idx.FILES`."""
    rng = numpy.random.RandomState(seed)
    arrays = []
    for n in (train, test):
        arrays += [rng.randint(0, 256, (n, 28, 28)), rng.randint(0, 10, n)]
    return [a.astype("uint8") for a in arrays]


def write_folder(folder, arrays=None, zipped=True):
    """Write the four files into `folder` and return it."""
    for name, array in zip(idx.FILES, arrays or make_arrays()):
        data = idx_bytes(array)
        path = folder / (name if zipped else name[:-3])
        path.write_bytes(gzip.compress(data) if zipped else data)
    return folder
