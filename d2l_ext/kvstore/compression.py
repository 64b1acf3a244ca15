"""Two-bit gradient compression: codes, packing, and the residual of the sender.

The algorithm of MXNet's `set_gradient_compression({'type': '2bit', …})`, written in
NumPy to be read. The results are equal in every bit: a `Snapshot` of the process's
memory contains MXNet's own messages and residuals.
"""

from contextlib import suppress

import numpy

#: The codes: below the threshold in magnitude, at most −threshold, at least threshold.
ZERO, MINUS, PLUS = 0b00, 0b10, 0b11
#: The shift of each of a byte's four codes: the first is in the highest bits.
SHIFTS = numpy.array([6, 4, 2, 0], dtype="uint8")
#: Codes per 32-bit word. The last word is sent even if it is not full.
CODES_PER_WORD = 16


class Sender:
    """The state of one device or worker for one key: the threshold and the residual.

        sender = Sender(threshold=0.5)
        message = sender.compress(gradient)
        received = decompress(message, gradient.shape, 0.5)

    `threshold`: positive as a float32, else `ValueError`; default 0.5, as in MXNet.
    `residual`: the part not yet sent, a float32 array of the gradient's shape; None
    before the first gradient.

    Developed in the chapter *Gradient compression*.
    """

    def __init__(self, threshold=0.5):
        self.threshold = _checked(threshold)
        self.residual = None

    def compress(self, gradient):
        """Add `gradient` to the residual, and return the message: `uint8`, packed.

        Raises `TypeError` unless the gradient is a float32 NumPy array, `ValueError`
        when its shape differs from that of the first one.
        """
        kind = type(gradient), getattr(gradient, "dtype", None)
        if kind != (numpy.ndarray, numpy.dtype("float32")):
            raise TypeError(f"compress takes a float32 NumPy array, not {kind}")
        if self.residual is None:
            self.residual = numpy.zeros_like(gradient)
        old, new = self.residual.shape, gradient.shape
        if new != old:
            raise ValueError(f"the shape was {old}, now {new}: use one sender per key")
        codes, self.residual = quantize(self.residual + gradient, self.threshold)
        return pack(codes)


def quantize(total, threshold):
    """Round to −threshold, 0 or threshold: the codes and the rounding error.

    `total`: gradient and residual together, a float32 array of any shape. Returns
    codes (`uint8`) and the new residual (float32), both of that shape. At most one
    threshold of an element is sent, whatever its size; the rest stays in the residual.
    NaN has code 00: it is never sent and stays in the residual.

    Keeping the error is *error feedback*: Seide, Fu, Droppo, Li and Yu (2014). A
    fixed threshold: Strom (2015). Developed in the chapter *Gradient compression*.
    """
    up, down = total >= threshold, total <= -threshold
    codes = numpy.where(up, PLUS, numpy.where(down, MINUS, ZERO)).astype("uint8")
    return codes, total - dequantize(codes, threshold)


def dequantize(codes, threshold):
    """Return the values that `codes` stand for: −threshold, 0 or threshold, float32."""
    return numpy.array([0, 0, -threshold, threshold], dtype="float32")[codes]


def pack(codes):
    """Pack 16 codes into each 32-bit word; return bytes, `uint8`, four per word.

    element   0  1  2  3    4  5  6  7    8  9 10 11   12 13 14 15
    bits     76 54 32 10   76 54 32 10   76 54 32 10   76 54 32 10
    byte          0             1             2             3

    The last word is padded with 00. Format: `quantize_2bit` in MXNet's
    gradient_compression-inl.h.
    """
    row = numpy.zeros(4 * packed_size(codes.size), dtype="uint8")
    row[: codes.size] = codes.ravel()
    return numpy.bitwise_or.reduce(row.reshape(-1, 4) << SHIFTS, axis=1)


def unpack(message, size):
    """Return the first `size` codes of a packed message, `uint8`; undoes `pack`."""
    codes = message[:, None] >> SHIFTS & 0b11  # (bytes, 4)
    return codes.ravel()[:size]


def decompress(message, shape, threshold=0.5):
    """Decode a packed message: a float32 array of this shape.

    `message`: from `Sender.compress`. `threshold`: the sender's.
    Raises `ValueError` for a message that is too short or too long for the shape, or a
    threshold that is not positive.
    """
    size = int(numpy.prod(shape))
    if len(message) != packed_size(size):
        raise ValueError(
            f"{size} values of shape {tuple(shape)} are packed in "
            f"{packed_size(size)} bytes, not {len(message)}"
        )
    return dequantize(unpack(message, size), _checked(threshold)).reshape(shape)


def packed_size(size):
    """Return a message's bytes for `size` values: four per 16 values, rounded up."""
    return -(-size // CODES_PER_WORD) * 4


class Snapshot:
    """A copy of this process's writable memory, to search for a library's buffers.

        before = Snapshot()
        assert before.holds(packed)  # packed: computed after the snapshot

    Create the array to search for after the snapshot, or the snapshot contains it.
    A snapshot takes about half a second and as much memory as the process uses. Linux
    only: raises `FileNotFoundError` elsewhere.

    Developed in the chapter *Gradient compression*.
    """

    def __init__(self):
        with open("/proc/self/maps") as maps:
            spans = [_span(line) for line in maps if " rw" in line and "[v" not in line]
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            self._regions = [_read(memory, *span) for span in spans]

    def holds(self, array):
        """Return whether the snapshot contains a NumPy array's bytes, contiguously."""
        wanted = array.tobytes()
        return any(wanted in region for region in self._regions)


def _checked(threshold):
    single = numpy.float32(threshold)
    if not single > 0:
        raise ValueError(f"the threshold must be greater than 0, not {threshold}")
    return single


def _span(line):
    start, end = line.split()[0].split("-")
    return int(start, 16), int(end, 16)


def _read(memory, start, end):
    parts = []
    with suppress(OSError):  # reserved but unreadable: a guard page, a device's buffer
        memory.seek(start)
        while part := memory.read(end - start):  # Linux returns at most 2 GiB at once
            parts.append(part)
            start += len(part)
    return b"".join(parts)
