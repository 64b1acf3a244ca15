"""A ring of processes that sum arrays without servers.

Each process sends to the next one and receives from the one before:

    rank 0 → rank 1 → rank 2 → … → rank n − 1 → rank 0

Over sockets, one loop, `ring_links.Links.flow`, sends ready bytes and receives
arriving ones, in pieces: a piece is added on arrival and can be sent on at once.
Processes of one host can keep arrays in shared memory; then the sockets carry only "I
am ready".
"""

import math
import mmap
import os
import time
from numbers import Integral

import numpy

from .ring_links import Links, RingError, open_both

#: Set by the launcher: a token, then 'ADDRESS:PORT' of each rank, separated by spaces.
PLACES = "D2L_EXT_RING"
#: Bytes of a piece in shared memory; they fit in a core's cache.
MEMORY_PIECE = 2**17


class Ring(Links):
    """One process of a ring; created by `join` or `connect`.

    `rank` of `num_workers`. `deadline`: seconds per call, including other ranks' delay,
    at most 10⁶; an error may come up to max(1, deadline / 4) seconds later, with its
    cause, unless that word would have to pass through the late rank. A time-out names
    a neighbour, which may itself be waiting, perhaps in an earlier call; and a rank
    that has ended after its last call may be named for the loss of another one.
    `shared`: whether `zeros` allocates shared memory. `sent`, `received`: bytes over
    the two sockets, without headers.

    Arrays are NumPy's, contiguous, and changed in place. All processes make the same
    calls in the same order. If one leaves, is late, or makes a different call, all get
    a `RingError`, and the ring is closed. Calls raise `TypeError` for anything but
    NumPy's arrays, and `ValueError` for one that is not contiguous or is read-only.
    Developed in the chapter *Rings between processes*.
    """

    type = "ring"

    def __init__(self, rank, num_workers, sockets, deadline, shared):
        super().__init__(rank, num_workers, sockets, deadline)
        self.shared = shared
        self.segments = []  # for each array of `zeros`, its bytes on all ranks

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """Leave the ring. A call in which other processes still wait fails."""
        self.segments.clear()
        super().close()

    def allreduce(self, x):
        """Sum `x` over all processes, the same bits everywhere; return it.

        Sends 2(n − 1) of the array's n chunks. Source: Patarasuk and Yuan (2009).
        """
        self._around("allreduce", x, range(1, 2 * self.num_workers - 1))
        return x

    def reduce_scatter(self, x):
        """Return chunk (rank + 1) mod n of the sum, a view of `x`. Overwrites `x`."""
        return self._around("reduce_scatter", x, range(1, self.num_workers))

    def allgather(self, x):
        """Fill `x` with every rank's chunk, as `reduce_scatter` left it; return `x`."""
        n = self.num_workers
        self._around("allgather", x, range(n, 2 * n - 1))
        return x

    def broadcast(self, x, root=0):
        """Broadcast rank `root`'s `x`, piece by piece around the ring; return it.

        Raises `ValueError` if `root` is not a rank.
        """
        row, n = _row(x), self.num_workers
        if root not in range(n):
            raise ValueError(f"root={root!r}: choose a rank from 0 to {n - 1}")
        into = [row] if self.rank != root else []
        out = [row] if (self.rank + 1) % n != root else []
        self.flow(f"broadcast {root}", row, out, into, 0 if into else row.nbytes)
        return x

    def barrier(self, what="barrier"):
        """Wait until all processes have called this; errors call it `what`."""
        word = numpy.zeros(self.num_workers, "uint8")  # each says so to the next
        into = [word[r : r + 1] for r in range(1, word.size)]
        self.flow(what, word, [word[1:]], into, 1)

    def zeros(self, shape, dtype="float32"):
        """Return an array of zeros. On a `shared` ring, all ranks must call this and
        share it.

        `allreduce`, `reduce_scatter` and `allgather` of it, or of equal slices of it,
        then use memory instead of sockets. It has no name in /dev/shm, so it is freed
        when the last process ends, however that happens. Each array keeps a file open
        for each rank: for many parameters, take slices of one.
        """
        shape = (shape,) if isinstance(shape, Integral) else tuple(shape)
        nbytes = math.prod(shape) * numpy.dtype(dtype).itemsize
        if not (self.shared and nbytes and self.num_workers > 1):
            return numpy.zeros(shape, dtype)
        fd = os.memfd_create("ring")
        try:
            os.ftruncate(fd, nbytes)
            own = numpy.frombuffer(mmap.mmap(fd, nbytes), "uint8")
            own[:] = 0  # touch the pages now
            cards = numpy.zeros((self.num_workers, 3), "int64")
            cards[self.rank] = os.getpid(), fd, os.fstat(fd).st_ino
            rounds = range(1, 2 * self.num_workers - 1)  # of an allreduce
            self._around(f"zeros of {nbytes} bytes, cards", cards, rounds)
            seen = [_open(*card, nbytes) for card in cards.tolist()]
            seen[self.rank] = own
            self.barrier()
        except OSError as error:
            self._fail(f"rank {self.rank} cannot see the others' memory ({error}): "
                       "create the ring with shared=False")
        finally:
            os.close(fd)
        self.segments.append(seen)
        return own.view(dtype).reshape(shape)

    def _around(self, what, x, rounds):
        """Send chunk i − r + 1 of rank i in round r, and receive i − r; return i + 1.

        Chunks that arrive in the first n − 1 rounds are added, later ones are copied.
        """
        row, n, i = _row(x), self.num_workers, self.rank
        edges = [c * row.size // n for c in range(n + 1)]
        chunks = [row[start:stop] for start, stop in zip(edges, edges[1:])]
        for seen in self.segments:
            at = row.ctypes.data - seen[i].ctypes.data
            if 0 <= at <= seen[i].nbytes - row.nbytes:
                theirs = [s[at : at + row.nbytes].view(row.dtype) for s in seen]
                name = f"{what} at {at}, {row.size} {row.dtype}, word"  # to be compared
                self._in_memory(name, row, edges, theirs, rounds)
                break
        else:
            out = [chunks[(i - r + 1) % n] for r in rounds]
            into = [chunks[(i - r) % n] for r in rounds]
            ready = out[0].nbytes if out else 0
            self.flow(what, row, out, into, ready, sum(r < n for r in rounds))
        return chunks[(i + 1) % n]

    def _in_memory(self, what, row, edges, theirs, rounds):
        """Add the other ranks' chunk to this rank's; write the sum into their arrays.

        Piece by piece, so that a sum is still in the cache when it is written.
        """
        n, i, step = self.num_workers, self.rank, MEMORY_PIECE // row.itemsize
        start, stop = edges[(i + 1) % n], edges[(i + 1) % n + 1]
        others = [theirs[(i + r) % n] for r in range(1, n)]
        self.barrier(what)  # all arrays are written
        for a in range(start, stop, step):
            own = row[a : min(a + step, stop)]
            parts = [other[a : a + len(own)] for other in others]
            for part in parts if rounds[0] < n else ():
                own += part
            for part in parts if rounds[-1] >= n else ():
                part[:] = own
        self.barrier(what)  # all sums are written


def _row(x):
    if not isinstance(x, numpy.ndarray):
        raise TypeError(f"x is a {type(x).__name__}: make it a NumPy array")
    if not (x.flags.c_contiguous and x.flags.writeable):
        raise ValueError("x is not contiguous, or is read-only: copy it")
    return x.reshape(-1)


def _open(pid, fd, inode, nbytes):
    """Return the bytes of another process's file."""
    with open(f"/proc/{pid}/fd/{fd}", "r+b") as theirs:
        if os.fstat(theirs.fileno()).st_ino != inode:
            raise OSError("that file descriptor belongs to another file here")
        memory = mmap.mmap(theirs.fileno(), nbytes)
    return numpy.frombuffer(memory, "uint8")


def join(deadline=30.0, shared=None, environ=os.environ):
    """Join the ring of all workers of a job of `pslaunch`; return this worker's `Ring`.

    The launcher provides each rank's address, 127.0.0.1 on one host, and a token.
    Arguments and errors: as in `connect`, but `shared` defaults to whether all ranks
    have one address; `RingError` also when this process belongs to no job. `environ`:
    the variables, default this process's.
    """
    if PLACES not in environ:
        raise RingError(f"{PLACES} is not set: start a job, such as `python -m "
                        "pslaunch -n 2 python train.py`, or call `connect`")
    token, *places = environ[PLACES].split()
    addresses = [place.rsplit(":", 1) for place in places]
    if shared is None:
        shared = len({host for host, _ in addresses}) == 1
    return connect(int(environ["DMLC_WORKER_ID"]), addresses, token, deadline, shared)


def connect(rank, addresses, token, deadline=30.0, shared=False):
    """Join the ring of processes at `addresses`, a (host, port) per rank: a `Ring`.

    `token`: a secret text of all ranks; it is never sent. `deadline`, in seconds, and
    `shared`: as in `Ring`. Here the deadline is for the neighbours to connect; a silent
    stranger costs one second of it. Raises `RingError` if a neighbour does not connect
    or does not know the token; `OSError` if this rank's address cannot be bound;
    `ValueError` if `rank` has no address.
    """
    if rank not in range(len(addresses)):
        raise ValueError(f"rank={rank!r}: choose a rank from 0 to {len(addresses) - 1}")
    if len(addresses) == 1:
        return Ring(0, 1, (), deadline, shared)
    until = time.monotonic() + deadline
    sockets = open_both(rank, addresses, token.encode(), until)
    ring = Ring(rank, len(addresses), sockets, deadline, shared)
    ring.barrier("joining")  # no rank begins before all have proved that they know it
    ring.sent = ring.received = ring.calls = 0
    return ring
