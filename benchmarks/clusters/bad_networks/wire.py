"""The time of an exchange on a slow link, by hand: bytes over bandwidth."""

from d2l_ext.kvstore.compression import packed_size

#: Bytes of a packet of 1,500 with its frame, and of what it carries: 40 bytes are
#: headers, 12 a time stamp.
FRAME, PAYLOAD = 1514, 1448


def wire_bytes(nbytes):
    """Return the bytes on the wire of `nbytes` in full packets, with all headers."""
    return nbytes * FRAME / PAYLOAD


def predicted(sizes, mbit, workers=2, servers=1, compress=False):
    """Return the seconds of `work.exchange`, by hand: all bytes through a server's
    link.

    Up, then down: the request for a pull waits behind the pushes of its worker.
    """
    up = sum(packed_size(n) if compress else 4 * n for n in sizes)
    down = sum(4 * n for n in sizes)
    nbytes = workers * (up + down) / servers
    return 8 * wire_bytes(nbytes) / (mbit * 1e6)
