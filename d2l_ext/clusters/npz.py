"""Arrays of numbers from an `.npz`, as `numpy.savez` lays them out, and nothing else.

NumPy's own reader takes any ZIP file, unpacks what is in it, reserves the memory that
a header asks for and evaluates that header as Python. Here every size is compared with
the bytes that are there before one of them is taken.
"""

import math
import re
import struct

import numpy as np

MOST = 10_000  # arrays in a file
#: Of a member of a ZIP file: flags, method, lengths of its name and of what follows.
_MEMBER = struct.Struct("<4s2xHH16xHH")
_ZIP64 = struct.Struct("<HHQQ")  # a tag, its length, the size unpacked and packed
_UTF8 = 0x800  # the flag for a name that is not ASCII
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|][biufc]\d\d?)', "
    rb"'fortran_order': (True|False), 'shape': \(([\d, ]{0,600})\), \} *\n", re.DOTALL
)  # fmt: skip


def read(packed):
    """Return the arrays in the bytes `packed`, a dict by name.

    Raises `ValueError` for anything that `numpy.savez` would not have written for
    arrays of numbers.
    """
    return {name: _array(name, data) for name, data in _members(packed)}


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
