"""A ring of processes that sum arrays without servers: each gives to the next, and
takes from the one before.

    rank 0 → rank 1 → rank 2 → … → rank n − 1 → rank 0

Over sockets one loop, `Ring._flow`, gives what is ready and takes what comes, in
pieces: a piece that has come is added, and may go on at once. Processes of one host
can have arrays in memory that all of them see; then sockets carry only "I am ready".
"""

import hmac
import math
import mmap
import os
import secrets
import select
import socket
import time
from collections import deque
from contextlib import suppress

import numpy

#: From the launcher: a token, then 'ADDRESS:PORT' of each rank, with blanks between.
PLACES = "D2L_EXT_RING"
#: Bytes that are received before they are added; a processor's cache holds them.
PIECE = 2**18
#: Bytes in front of each call, a text that says what it is.
HEAD = 64
#: Seconds for a stranger to prove that it is none, and for a neighbour to say why.
PATIENCE, WORD = 1.0, 0.2


class RingError(RuntimeError):
    """A ring that cannot go on: somebody left, is late, or does something else."""


class Ring:
    """One process of a ring; `join` and `connect` make it.

    `rank` of `num_workers`. `deadline`: seconds for each call, with the wait for others.
    `shared`: whether `zeros` gives memory that all see. `sent`, `received`: bytes of
    arrays over the two sockets; a call has `HEAD` more on each link. `read`: bytes read
    in others' memory.

    Arrays are NumPy's, contiguous, and changed in place. All processes make the same
    calls in the same order. When another leaves, is late, or makes another call, all
    get a `RingError`, and the ring is closed; `TypeError` and `ValueError` for arrays.
    Developed in the chapter *Rings between processes*.
    """

    def __init__(self, rank, num_workers, links, deadline, shared):
        self.rank, self.num_workers, self.deadline = rank, num_workers, deadline
        self.links, self.shared, self.cause, self.left = links, shared, "", False
        self.sent = self.received = self.read = self.calls = 0
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
        """Leave the ring. A call in which others still wait fails there."""
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
        """Return chunk (rank + 1) mod n of the sum, a view of `x`, whose rest is lost."""
        return self._around("reduce_scatter", x, range(1, self.num_workers))

    def allgather(self, x):
        """Fill `x` with each rank's chunk as `reduce_scatter` leaves it; return it."""
        n = self.num_workers
        self._around("allgather", x, range(n, 2 * n - 1))
        return x

    def broadcast(self, x, root=0):
        """Give all the `x` of rank `root`, piece by piece around; return it."""
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
        """An array of zeros. On a `shared` ring, where all must ask, all see it.

        What is done to it, or to equal slices, goes through memory then. It has no name
        in /dev/shm; when the last process ends, however it does, it is gone.
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        nbytes = math.prod(shape) * numpy.dtype(dtype).itemsize
        if not (self.shared and nbytes and self.links):
            return numpy.zeros(shape, dtype)
        fd = os.memfd_create("ring")
        try:
            os.ftruncate(fd, nbytes)
            own = numpy.frombuffer(mmap.mmap(fd, nbytes), "uint8")
            own[:] = 0  # fetch the pages now
            cards = numpy.zeros((self.num_workers, 3), "int64")
            own_card = os.getpid(), fd, os.fstat(fd).st_ino
            cards[(self.rank + 1) % self.num_workers] = own_card
            cards = numpy.roll(self.allgather(cards), -1, axis=0).tolist()
            seen = [_open(*card, nbytes) for card in cards]
            seen[self.rank] = own
            self.barrier()
        except OSError as error:
            self._fail(f"rank {self.rank} cannot see the others' memory ({error}): "
                       "make a ring that is not shared")  # fmt: skip
        finally:
            os.close(fd)
        self.segments.append(seen)
        return own.view(dtype).reshape(shape)

    def _around(self, what, x, rounds):
        """In round r rank i gives chunk i − r + 1 to the next, and takes chunk i − r.

        What comes in the first n − 1 rounds is added, what comes later is copied.
        """
        row, n, i = _row(x), self.num_workers, self.rank
        edges = [c * row.size // n for c in range(n + 1)]
        chunks = [row[start:stop] for start, stop in zip(edges, edges[1:])]
        address = row.ctypes.data
        for seen in self.segments:
            at = address - seen[i].ctypes.data
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
        """Add the others' chunk to one's own, then copy the chunks that they added."""
        n, i, step = self.num_workers, self.rank, PIECE // row.itemsize
        self.barrier(what)  # all have written
        if rounds[0] < n:
            stop = edges[(i + 1) % n + 1]
            for a in range(edges[(i + 1) % n], stop, step):
                for r in range(1, n):
                    part = theirs[(i + r) % n][a : min(a + step, stop)]
                    row[a : a + len(part)] += part
                    self.read += part.nbytes
            self.barrier(what)
        if rounds[-1] >= n:
            for c in (c % n for c in range(i + 2, i + n + 1)):
                part = theirs[c - 1][edges[c] : edges[c + 1]]
                row[edges[c] : edges[c + 1]] = part
                self.read += part.nbytes
            self.barrier(what)  # nobody reads any more

    def _flow(self, what, x, out, into, ready, adds=0):
        """Give `out` to the next, fill `into` from the one before: lists of arrays.

        `ready`: bytes of `out` that may go at once; each byte that has come makes one
        more ready. What comes for the first `adds` arrays of `into` is added to them.
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
                    self._wait(name, until, unsent and self.ready, place)
        except BaseException:
            self.close()  # so that the others do not wait
            raise
        self.sent += sum(part.nbytes for part in out)
        self.received += sum(part.nbytes for part in into)

    def _places(self, head, into, adds):
        """Where the next bytes go, piece by piece, and after each what is done to it."""
        theirs = bytearray(HEAD)
        yield memoryview(theirs)
        if head != theirs:
            mine, other = (text.decode(errors="replace").strip() for text in
                           (head, theirs))  # fmt: skip
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
        # A head alone would be a message of its own.
        more = socket.MSG_MORE if self.ready > len(part) == HEAD else 0
        try:
            count = self.after.send(part[: min(self.ready, PIECE)], more)
        except BlockingIOError:
            return 0
        except OSError:
            self._lost(self._name(1))
        self.ready -= count
        unsent[0] = part[count:]
        if count == len(part):
            unsent.popleft()
        return count

    def _take(self, place):
        try:
            count = self.before.recv_into(place)
        except BlockingIOError:
            return 0
        except OSError:
            count = 0
        return count or self._lost(self._name(-1))

    def _wait(self, name, until, sending, wanting):
        """Until one of the two sockets is ready, or it is too late."""
        poll, left = select.poll(), until - time.monotonic()
        if left <= 0:
            who = f"{self._name(-1)} gave" if wanting else f"{self._name(1)} took"
            self._fail(f"{name}: no end after {self.deadline:g} s, {who} nothing more")
        if not self.left:
            poll.register(self.after, select.POLLIN | bool(sending) * select.POLLOUT)
        if wanting:
            poll.register(self.before, select.POLLIN)
        for fd, event in poll.poll(1e3 * left):
            if fd == self.after.fileno() and event & ~select.POLLOUT:
                self._listen(sending)

    def _listen(self, sending):
        """From the next comes nothing but a word why it failed, or its end."""
        try:
            word = self.after.recv(1000).decode(errors="replace")
        except OSError:
            word = ""
        self.left = not word
        if word or sending:  # else it may have ended well, and this one may, too
            self._fail(word or f"{self._name(1)} has left the ring")

    def _lost(self, who):
        """A connection has ended. The next may know why; else `who` is the reason."""
        poll = select.poll()
        poll.register(self.after, select.POLLIN)
        if poll.poll(1e3 * WORD):
            self._listen(True)
        self._fail(f"{who} has left the ring")

    def _name(self, step):
        return f"rank {(self.rank + step) % self.num_workers}"

    def _fail(self, cause):
        self.cause = cause
        with suppress(OSError):
            self.before.send(cause.encode()[:1000])  # so it goes around, backwards
        self.close()
        raise RingError(f"rank {self.rank}: {cause}")


def _row(x):
    if not isinstance(x, numpy.ndarray):
        raise TypeError(f"a {type(x).__name__}: make it a NumPy array")
    if not (x.flags.c_contiguous and x.flags.writeable):
        raise ValueError("the array is not contiguous, or cannot be written: copy it")
    return x.reshape(-1)


def _open(pid, fd, inode, nbytes):
    """The bytes of another process' file, to be read only."""
    theirs = os.open(f"/proc/{pid}/fd/{fd}", os.O_RDONLY)
    try:
        if os.fstat(theirs).st_ino != inode:
            raise OSError("its number is another file's here")
        memory = mmap.mmap(theirs, nbytes, prot=mmap.PROT_READ)
    finally:
        os.close(theirs)
    return numpy.frombuffer(memory, "uint8")


# ---- How a ring comes to be ----


def join(deadline=30.0, shared=False, environ=os.environ):
    """The ring of all workers of a job that `pslaunch` has started.

    It tells where each listens, 127.0.0.1 on one host, and a token. The arguments and
    errors are those of `connect`; `RingError` also when this process has no job.
    """
    if PLACES not in environ:
        raise RingError(f"{PLACES} is not set: a ring needs a job, as of `python -m "
                        "pslaunch -n 2 python train.py`, or `connect`")  # fmt: skip
    token, *places = environ[PLACES].split()
    addresses = [tuple(place.rsplit(":", 1)) for place in places]
    return connect(int(environ["DMLC_WORKER_ID"]), addresses, token, deadline, shared)


def connect(rank, addresses, token, deadline=30.0, shared=False):
    """The ring of processes that listen at `addresses`, a (host, port) of each rank.

    `token`: a text that all know and nobody else; it is never sent. `deadline`, in
    seconds, and `shared` as in `Ring`: here it is for the neighbours to come. Raises
    `RingError` when they do not, or do not know the token.
    """
    n, links, until = len(addresses), {}, time.monotonic() + deadline
    if n == 1:
        return Ring(0, 1, (), deadline, shared)
    before, after = (rank - 1) % n, (rank + 1) % n
    with socket.create_server((addresses[rank][0], int(addresses[rank][1]))) as server:
        try:
            # Who dials waits for an answer. If all dialled first, all would wait.
            for first in (rank == 0, rank != 0):
                if first:
                    links[0] = _admit(server, token, before, rank, until)
                else:
                    links[1] = _dial(addresses[after], token, rank, after, until)
            return Ring(rank, n, (links[0], links[1]), deadline, shared)
        except BaseException:
            for link in links.values():
                link.close()
            raise


def _admit(server, token, who, rank, until):
    """The connection of rank `who`. Strangers are sent away."""
    strangers = 0
    while True:
        try:
            server.settimeout(max(until - time.monotonic(), 1e-3))
            link, _ = server.accept()
        except OSError:
            raise RingError(f"rank {rank}: rank {who} did not come in time; {strangers}"
                            " without the token were sent away") from None  # fmt: skip
        if _knows(link, token, f"dial {who} {rank}", f"take {rank} {who}", PATIENCE):
            return link
        strangers += 1


def _dial(address, token, rank, who, until):
    """A connection to rank `who`, which may not listen yet."""
    host, port = address
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise RingError(f"rank {rank}: rank {who} does not listen at {host}:{port}")
        with suppress(OSError):
            link = socket.create_connection((host, int(port)), left)
            break
        time.sleep(0.01)
    if not _knows(link, token, f"take {who} {rank}", f"dial {rank} {who}", left):
        raise RingError(f"rank {rank}: who listens at {host}:{port} is not rank {who}, "
                        "has another token, or has left")  # fmt: skip
    return link


def _knows(link, token, theirs, ours, patience):
    """Whether the other end knows the token; it is told that this one does."""
    link.settimeout(patience)
    try:
        nonce = secrets.token_bytes(16)
        link.sendall(nonce)
        their_nonce = _exactly(link, 16)
        link.sendall(_proof(token, ours, nonce, their_nonce))
        if hmac.compare_digest(_exactly(link, 32),
                               _proof(token, theirs, their_nonce, nonce)):  # fmt: skip
            return True
    except OSError:
        pass
    link.close()
    return False


def _proof(token, who, *nonces):
    return hmac.new(token.encode(), b"".join([who.encode(), *nonces]), "sha256").digest()


def _exactly(link, count):
    data = b""
    while len(data) < count:
        new = link.recv(count - len(data))
        if not new:
            raise OSError("the connection was closed")
        data += new
    return data
