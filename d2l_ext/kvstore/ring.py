"""A ring of processes that sum arrays without servers.

Each process sends to the next one and receives from the one before:

    rank 0 → rank 1 → rank 2 → … → rank n − 1 → rank 0

Over sockets, one loop, `Ring._flow`, sends ready bytes and receives arriving ones, in
pieces: a piece is added on arrival and can be sent on at once. Processes of one host
can keep arrays in shared memory; then the sockets carry only "I am ready".
"""

import math
import mmap
import os
import select
import socket
import struct
import time
from collections import deque
from contextlib import ExitStack, suppress
from multiprocessing import AuthenticationError
from multiprocessing import connection as proof

import numpy

#: Set by the launcher: a token, then 'ADDRESS:PORT' of each rank, separated by blanks.
PLACES = "D2L_EXT_RING"
#: Bytes of a piece that is received and then added; they fit in a processor's cache.
PIECE = 2**19
MEMORY_PIECE = 2**17
#: Bytes of the header of each call, a text that describes it.
HEAD = 64
#: Seconds for a new connection to prove its token, and for a neighbour to say why.
PATIENCE, WORD = 1.0, 0.5


class RingError(RuntimeError):
    """The ring failed: a process left, is late, or made a different call."""


class Ring:
    """One process of a ring; created by `join` or `connect`.

    `rank` of `num_workers`. `deadline`: seconds per call, other ranks' delay included.
    `shared`: whether `zeros` allocates shared memory. `sent`, `received`: bytes of
    arrays over the two sockets; a call has `HEAD` more on each link.

    Arrays are NumPy's, contiguous, and changed in place. All processes make the same
    calls in the same order. If one leaves, is late, or makes a different call, all get
    a `RingError`, and the ring is closed; `TypeError` and `ValueError` for arrays.
    Developed in the chapter *Rings between processes*.
    """

    type = "ring"

    def __init__(self, rank, num_workers, links, deadline, shared):
        self.rank, self.num_workers, self.deadline = rank, num_workers, deadline
        self.links, self.shared, self.cause, self.left = links, shared, "", False
        self.sent = self.received = self.calls = 0
        self.segments = []  # for each array of `zeros`, its bytes on all ranks
        self.scratch = numpy.empty(PIECE, "uint8")
        self.before, self.after = links or (None, None)
        for link in links:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.setblocking(False)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """Leave the ring. A call in which other processes still wait fails."""
        self.cause = self.cause or "this process has left it"
        self.segments.clear()
        for link in self.links:
            link.close()

    def allreduce(self, x):
        """Sum `x` over all processes, the same bits everywhere; return it.

        Sends 2(n − 1)/n of the array. Source: Patarasuk and Yuan (2009).
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
        """Broadcast rank `root`'s `x`, piece by piece around the ring; return it."""
        row, n = _row(x), self.num_workers
        if root not in range(n):
            raise ValueError(f"root={root!r}: there are the ranks 0 to {n - 1}")
        into = [row] if self.rank != root else []
        out = [row] if (self.rank + 1) % n != root else []
        self._flow(f"broadcast {root}", row, out, into, 0 if into else row.nbytes)
        return x

    def barrier(self, what="barrier"):
        """Wait until all processes are here."""
        word = numpy.zeros(self.num_workers, "uint8")  # each says so to the next
        into = [word[r : r + 1] for r in range(1, word.size)]
        self._flow(what, word, [word[1:]], into, 1)

    def zeros(self, shape, dtype="float32"):
        """An array of zeros. On a `shared` ring, all ranks must call this and share it.

        Calls on it, or on equal slices of it, then use memory instead of sockets. It
        has no name in /dev/shm, so it is freed when the last process ends, however
        that happens.
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        nbytes = math.prod(shape) * numpy.dtype(dtype).itemsize
        if not (self.shared and nbytes and self.links):
            return numpy.zeros(shape, dtype)
        fd = os.memfd_create("ring")
        try:
            os.ftruncate(fd, nbytes)
            own = numpy.frombuffer(mmap.mmap(fd, nbytes), "uint8")
            own[:] = 0  # touch the pages now
            cards = numpy.zeros((self.num_workers, 3), "int64")
            cards[self.rank] = os.getpid(), fd, os.fstat(fd).st_ino
            seen = [_open(*card, nbytes) for card in self.allreduce(cards).tolist()]
            seen[self.rank] = own
            self.barrier()
        except OSError as error:
            self._fail(f"rank {self.rank} cannot see the others' memory ({error}): "
                       "make a ring that is not shared")
        finally:
            os.close(fd)
        self.segments.append(seen)
        return own.view(dtype).reshape(shape)

    def _around(self, what, x, rounds):
        """In round r rank i sends chunk i − r + 1 to the next and receives chunk i − r.

        Chunks that arrive in the first n − 1 rounds are added, later ones are copied.
        """
        row, n, i = _row(x), self.num_workers, self.rank
        edges = [c * row.size // n for c in range(n + 1)]
        chunks = [row[start:stop] for start, stop in zip(edges, edges[1:])]
        for seen in self.segments:
            at = row.ctypes.data - seen[i].ctypes.data
            if 0 <= at <= seen[i].nbytes - row.nbytes:
                theirs = [s[at : at + row.nbytes].view(row.dtype) for s in seen]
                self._in_memory(f"{what} at {at}", row, edges, theirs, rounds)
                break
        else:
            out = [chunks[(i - r + 1) % n] for r in rounds]
            into = [chunks[(i - r) % n] for r in rounds]
            ready = out[0].nbytes if out else 0
            self._flow(what, row, out, into, ready, sum(r < n for r in rounds))
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

    def _flow(self, what, x, out, into, ready, adds=0):
        """Send `out` to the next rank, fill `into` from the previous: lists of arrays.

        `ready`: bytes of `out` that can be sent at once; each received byte makes one
        more ready. The first `adds` arrays of `into` are added to, the rest filled.
        """
        if self.cause:
            raise RingError(f"rank {self.rank}: the ring is closed: {self.cause}")
        self.calls += 1
        if not self.links:
            return
        name = f"call {self.calls}: {what} of {x.nbytes:,} bytes ({x.dtype})"
        head, until = name.encode().ljust(HEAD)[:HEAD], time.monotonic() + self.deadline
        unsent = deque(memoryview(part).cast("B") for part in (head, *out) if len(part))
        places, self.ready = self._places(head, into, adds), HEAD + ready
        try:
            place = next(places)
            while unsent or place:
                given = self._give(unsent) if unsent and self.ready else 0
                taken = self._take(place) if place else 0
                place = place and place[taken:] or next(places, b"")
                if not given and not taken:
                    self._wait(name, until, unsent, place)
        except BaseException:
            self.close()  # so that the other ranks do not wait
            raise
        self.sent += sum(part.nbytes for part in out)
        self.received += sum(part.nbytes for part in into)

    def _places(self, head, into, adds):
        """Yield the place of the next bytes, piece by piece; add each on arrival."""
        theirs = bytearray(HEAD)
        self.begun = False
        yield memoryview(theirs)
        self.begun = True
        if head != theirs:
            mine, other = (h.decode(errors="replace").strip() for h in (head, theirs))
            self._fail(f"rank {self.rank} makes {mine}; {self._name(-1)} {other}")
        for number, array in enumerate(into):
            step = PIECE // array.itemsize
            for start in range(0, len(array), step):
                piece = array[start : start + step]
                if number < adds:
                    yield memoryview(self.scratch)[: piece.nbytes]
                    piece += self.scratch[: piece.nbytes].view(piece.dtype)
                else:
                    yield memoryview(piece).cast("B")
                self.ready += piece.nbytes

    def _give(self, unsent):
        part = unsent[0]
        # A header alone would become a packet of its own.
        more = socket.MSG_MORE if self.ready > len(part) == HEAD else 0
        try:
            count = self.after.send(part[: min(self.ready, PIECE)], more)
        except BlockingIOError:
            return 0
        except OSError:
            self._lost(1)
        self.ready -= count
        unsent[0] = part[count:]
        if count == len(part):
            unsent.popleft()
        return count

    def _take(self, place):
        try:
            return self.before.recv_into(place) or self._lost(-1)
        except BlockingIOError:
            return 0
        except ConnectionError:
            self._lost(-1)

    def _wait(self, name, until, unsent, wanting):
        """Wait for a socket; a rank that misses a header times out first."""
        poll, left = select.poll(), until - time.monotonic() + WORD * self.begun
        if left <= 0:
            who = f"{self._name(-1)} gave" if wanting else f"{self._name(1)} took"
            how = "nothing more" if self.begun else "not even its head"
            self._fail(f"{name}: no end after {self.deadline:g} s, {who} {how}")
        if not self.left:
            sending = bool(unsent and self.ready)
            poll.register(self.after, select.POLLIN | sending * select.POLLOUT)
        if wanting:
            poll.register(self.before, select.POLLIN)
        for fd, event in poll.poll(1e3 * left):
            if fd == self.after.fileno() and event & ~select.POLLOUT:
                self._listen(unsent)

    def _listen(self, unsent):
        """The next rank sends nothing but the cause of its failure, or its end."""
        word = b""
        with suppress(OSError):
            word = self.after.recv(1000)
        self.left = not word
        if word or unsent:  # else it may have ended normally, and this one may, too
            self._fail(word.decode() or f"{self._name(1)} has left the ring")

    def _lost(self, step):
        """A connection has ended. The next rank may know why; else it has left."""
        poll = select.poll()
        poll.register(self.after, select.POLLIN)
        if poll.poll(1e3 * WORD):
            self._listen(True)
        self._fail(f"{self._name(step)} has left the ring")

    def _name(self, step):
        return f"rank {(self.rank + step) % self.num_workers}"

    def _fail(self, cause):
        self.cause = cause
        with suppress(OSError):
            self.before.send(cause.encode()[:1000])  # it travels around, backwards
        self.close()
        raise RingError(f"rank {self.rank}: {cause}")


def _row(x):
    if not isinstance(x, numpy.ndarray):
        raise TypeError(f"a {type(x).__name__}: make it a NumPy array")
    if not (x.flags.c_contiguous and x.flags.writeable):
        raise ValueError("the array is not contiguous, or cannot be written: copy it")
    return x.reshape(-1)


def _open(pid, fd, inode, nbytes):
    """The bytes of another process's file."""
    with open(f"/proc/{pid}/fd/{fd}", "r+b") as theirs:
        if os.fstat(theirs.fileno()).st_ino != inode:
            raise OSError("its number belongs to another file here")
        memory = mmap.mmap(theirs.fileno(), nbytes)
    return numpy.frombuffer(memory, "uint8")


# ---- Joining a ring ----


def join(deadline=30.0, shared=None, environ=os.environ):
    """Join the ring of all workers of a job that `pslaunch` has started.

    The launcher provides each rank's address, 127.0.0.1 on one host, and a token.
    Arguments and errors: as in `connect`, but `shared` defaults to whether all ranks
    have one address; `RingError` also when this process belongs to no job.
    """
    if PLACES not in environ:
        raise RingError(f"{PLACES} is not set: a ring needs a job, as of `python -m "
                        "pslaunch -n 2 python train.py`, or `connect`")
    token, *places = environ[PLACES].split()
    addresses = [place.rsplit(":", 1) for place in places]
    if shared is None:
        shared = len({host for host, _ in addresses}) == 1
    return connect(int(environ["DMLC_WORKER_ID"]), addresses, token, deadline, shared)


def connect(rank, addresses, token, deadline=30.0, shared=False):
    """Join the ring of processes at `addresses`, a (host, port) per rank.

    `token`: a secret text of all ranks; it is never sent. `deadline`, in seconds, and
    `shared`: as in `Ring`. Here the deadline is for the neighbours to connect; a silent
    stranger costs `PATIENCE` of it. Raises `RingError` if a neighbour does not connect
    or does not know the token; `OSError` if this rank's address cannot be bound.
    """
    n, until, key = len(addresses), time.monotonic() + deadline, token.encode()
    if n == 1:
        return Ring(0, 1, (), deadline, shared)
    (host, port), after, before = addresses[rank], (rank + 1) % n, (rank - 1) % n
    with socket.create_server((host, int(port))) as server, ExitStack() as links:
        found = {}
        # A rank that dials waits for an answer. If all dialled first, all would wait.
        for to_dial in (rank > 0, rank == 0):
            link = (_dial(addresses[after], key, rank, after, until) if to_dial else
                    _admit(server, key, rank, before, until))
            found[to_dial] = links.enter_context(link)
        links.pop_all()
    ring = Ring(rank, n, (found[False], found[True]), deadline, shared)
    ring.barrier("joining")  # no rank begins before all have proved that they know it
    ring.sent = ring.received = ring.calls = 0
    return ring


def _admit(server, key, rank, who, until):
    """Accept rank `who`, which proves that it knows the key; refuse strangers."""
    strangers = 0
    while True:
        try:
            server.settimeout(max(until - time.monotonic(), 1e-3))
            link, _ = server.accept()
        except OSError:
            raise RingError(f"rank {rank}: rank {who} did not connect in time; "
                            f"refused without the token: {strangers}") from None
        if _knows(link, key, [proof.deliver_challenge, proof.answer_challenge]):
            return link
        strangers += 1


def _dial(address, key, rank, who, until):
    """Connect to rank `who`, which may not be listening yet."""
    where = f"{address[0]}:{address[1]}"
    while time.monotonic() < until:
        with suppress(OSError):
            left = max(until - time.monotonic(), 1e-3)
            link = socket.create_connection((address[0], int(address[1])), left)
            steps = [proof.answer_challenge, proof.deliver_challenge]
            if _knows(link, key, steps, left):
                return link
            raise RingError(f"rank {rank}: the process at {where} is not rank {who}, "
                            "has another token, or has left")
        time.sleep(0.01)
    raise RingError(f"rank {rank}: rank {who} does not listen at {where}")


def _knows(link, key, steps, patience=PATIENCE):
    """Whether the other end knows the key; proves to it that this one does."""
    link.settimeout(None)  # the kernel's time-out: Python's does not reach `proof`
    limit = struct.pack("ll", int(patience), int(patience % 1 * 1e6))
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    try:
        with proof.Connection(os.dup(link.fileno())) as talk:
            for step in steps:
                step(talk, key)
        return True
    except (OSError, EOFError, AuthenticationError):
        link.close()
        return False
