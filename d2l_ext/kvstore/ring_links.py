"""The connections of a process in a ring: one to each of its two neighbours.

    rank 0 → rank 1 → rank 2 → … → rank n − 1 → rank 0

Arrays travel with the arrows. Against them travels only the cause of a failure. Both
ends of a new connection prove that they know the ring's token, which is never sent.
"""

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

#: Bytes of a piece that is received and then added; they fit in a processor's cache.
PIECE = 2**19
#: Bytes of the header of each call, a text that describes it.
HEAD = 64
#: Seconds for a new connection to prove its token.
PATIENCE = 1.0


class RingError(RuntimeError):
    """The ring failed: a process left, is late, or made a different call."""


class Links:
    """The two links of `rank` among `num_workers`.

    `sockets`: from the rank before and to the next; empty if this process is alone.
    `deadline`: seconds per call, including other ranks' delay. `sent`, `received`:
    bytes over the two sockets; each of the `calls` has `HEAD` more on each link.
    `cause`: of the failure, or empty. `let_arrive`: called before this process leaves
    because another makes a different call; a flight recorder then waits until the
    others are in that call, too.
    """

    def __init__(self, rank, num_workers, sockets, deadline):
        self.rank, self.num_workers, self.deadline = rank, num_workers, deadline
        self.before, self.after = sockets or (None, None)
        self.sent = self.received = self.calls = 0
        self.cause, self.left = "", False
        self.let_arrive = lambda: None
        self.scratch = numpy.empty(PIECE, "uint8")
        for link in sockets:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.setblocking(False)

    @property
    def patience(self):
        """Seconds for a neighbour to say why it failed."""
        return max(0.5, self.deadline / 8)

    def close(self):
        """Leave the ring. A call in which other processes still wait fails."""
        self.cause = self.cause or "this process has left it"
        for link in filter(None, (self.before, self.after)):
            link.close()

    def flow(self, what, x, out, into, ready, adds=0):
        """Send `out` to the next rank, fill `into` from the previous: lists of arrays.

        `ready`: bytes of `out` that can be sent at once; each received byte makes one
        more ready. The first `adds` arrays of `into` are added to, the rest filled.
        Raises `RingError` if the ring is closed or the call fails.
        """
        if self.cause:
            raise RingError(f"rank {self.rank}: the ring is closed: {self.cause}")
        self.calls += 1
        if self.num_workers == 1:
            return
        name = f"call {self.calls}: {what} of {x.nbytes:,} bytes ({x.dtype})"
        head = name.encode().ljust(HEAD)[:HEAD]
        unsent = deque(memoryview(part).cast("B") for part in (head, *out) if len(part))
        places, self.ready = self._places(head, into, adds), HEAD + ready
        try:
            self._exchange(name, unsent, places)
        except BaseException:
            self.close()  # so that the other ranks do not wait
            raise
        self.sent += sum(part.nbytes for part in out)
        self.received += sum(part.nbytes for part in into)

    def _exchange(self, name, unsent, places):
        """Send all of `unsent` and fill all `places`, whichever can go on."""
        until = time.monotonic() + self.deadline
        place = next(places)
        while unsent or place:
            given = self._give(unsent) if unsent and self.ready else 0
            taken = self._take(place) if place else 0
            if taken == len(place):
                place = next(places, b"")
            else:
                place = place[taken:]
            if not given and not taken:
                self._wait(name, until, unsent, place)

    def _places(self, head, into, adds):
        """Yield the place of the next bytes, piece by piece; add each on arrival."""
        theirs = bytearray(HEAD)
        self.begun = False
        yield memoryview(theirs)
        self.begun = True
        if head != theirs:
            mine, other = (h.decode(errors="replace").strip() for h in (head, theirs))
            self.let_arrive()
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
        poll, left = select.poll(), until - time.monotonic()
        if self.begun:
            left += self.patience
        if left <= 0:
            late = f"{self._name(-1)} has not even sent its header"
            if self.begun:
                late = (f"{self._name(-1)} sent nothing more" if wanting else
                        f"{self._name(1)} received nothing more")
            self._fail(f"{name}: no end after {self.deadline:g} s, {late}")
        if not self.left:
            can_send = unsent and self.ready
            events = select.POLLIN | select.POLLOUT if can_send else select.POLLIN
            poll.register(self.after, events)
        if wanting:
            poll.register(self.before, select.POLLIN)
        for fd, event in poll.poll(1e3 * left):
            if fd == self.after.fileno() and event & ~select.POLLOUT:
                self._listen(unsent)

    def _listen(self, unsent):
        """Listen to the next rank: it sends why it failed; no bytes mean it left."""
        word = ""
        with suppress(OSError):
            word = self.after.recv(1000).decode()
        self.left = not word
        if word == f"{self._name(0)} has left the ring":
            return  # this rank still asks, and the next has given up
        if word or unsent:  # else it may have ended normally, and this one may, too
            self._fail(word or f"{self._name(1)} has left the ring")

    def _lost(self, step):
        """Say why a connection has ended: the next rank may know; else it has left.

        It is asked by an end of what this rank sends. It asks in turn, as far as the
        rank whose next has left.
        """
        with suppress(OSError):
            self.after.shutdown(socket.SHUT_WR)
        poll = select.poll()
        poll.register(self.after, select.POLLIN)
        if poll.poll(1e3 * self.patience):
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


def open_both(rank, addresses, key, until):
    """Connect `rank` with its neighbours; return two sockets, (before, after).

    `addresses`: a (host, port) per rank. `key`: the token, bytes. `until`: a time of
    `time.monotonic`. Raises `RingError` if a neighbour does not connect by then or does
    not know the token; `OSError` if this rank's address cannot be bound.
    """
    n = len(addresses)
    (host, port), after, before = addresses[rank], (rank + 1) % n, (rank - 1) % n
    with socket.create_server((host, int(port))) as server, ExitStack() as links:
        found = {}
        # A rank that dials waits for an answer. If all dialled first, all would wait.
        for to_dial in (rank > 0, rank == 0):
            link = (_dial(addresses[after], key, rank, after, until) if to_dial else
                    _admit(server, key, rank, before, until))
            found[to_dial] = links.enter_context(link)
        links.pop_all()
    return found[False], found[True]


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
    """Return whether the other end knows the key; prove to it that this one does."""
    link.settimeout(None)  # the kernel's time-out: Python's does not reach `proof`
    limit = struct.pack("ll", int(patience), int(patience % 1 * 1e6))
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    try:
        with proof.Connection(os.dup(link.fileno())) as talk:
            for step in steps:
                step(talk, key)
        return True
    except (OSError, EOFError, AuthenticationError, AssertionError):
        link.close()
        return False
