"""One device: a process that exchanges arrays over sockets, by both ways in turn.

    python -m benchmarks.two_links.node '{"rank": 0, …}'

See `trials.run` for what it is told. It prints what it found, as JSON. It needs NumPy
alone, so that eight of them start in a moment.
"""

import json
import socket
import sys
import threading
import time

import numpy

PORT, PATIENCE = 9300, 30


class Ring:
    """The ring through `members`, as member `me` sees it: sockets `to` and `come`."""

    def __init__(self, members, me, to, come):
        self.k, self.place = len(members), members.index(me)
        self.to, self.come, self.sent = to, come, 0

    def reduce_scatter(self, chunks):
        """Leave the chunk of the place behind this one with the sum; return it."""
        arriving = numpy.empty_like(max(chunks, key=len))
        for r in range(self.k - 1):
            mine, theirs = (chunks[(self.place - r - n) % self.k] for n in (0, 1))
            self._swap(mine, arriving[: len(theirs)])
            theirs += arriving[: len(theirs)]
        return chunks[(self.place + 1) % self.k]

    def allgather(self, chunks):
        for r in range(self.k - 1):
            mine, theirs = (chunks[(self.place - r + n) % self.k] for n in (1, 0))
            self._swap(mine, theirs)

    def allreduce(self, array):
        chunks = numpy.array_split(array, self.k)
        self.reduce_scatter(chunks)
        self.allgather(chunks)

    def _swap(self, out, into):
        sender = threading.Thread(target=self.to.sendall, args=(memoryview(out),))
        sender.start()
        view = memoryview(into).cast("B")
        while view:
            got = self.come.recv_into(view)
            if not got:
                raise ConnectionError(f"place {self.place - 1} of a ring has gone")
            view = view[got:]
        sender.join()
        self.sent += out.nbytes


def rings(rank, hosts, devices, addresses):
    """The rings of a device: through all, inside of its host, between the hosts.

    `addresses`: of each device, on the inner and on the outer network.
    """
    k, host = hosts * devices, rank // devices
    members = {
        "flat": range(k),
        "inside": range(host * devices, (host + 1) * devices),
        "between": range(rank % devices, k, devices),
    }
    listener = socket.create_server(("", PORT + rank), backlog=2 * len(members))
    listener.settimeout(PATIENCE)
    to, come = {}, {}
    for name, those in members.items():
        following = those[(those.index(rank) + 1) % len(those)]
        address = addresses[following][following // devices != host]
        to[name] = _connect(address, PORT + following)
        to[name].sendall(name.ljust(8).encode())
    while len(come) < len(members):
        connection, _ = listener.accept()
        name = connection.recv(8, socket.MSG_WAITALL).decode().strip()
        come[name] = connection
    for one in (*to.values(), *come.values()):
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return {name: Ring(those, rank, to[name], come[name])
            for name, those in members.items()}  # fmt: skip


def _connect(address, port):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((address, port), timeout=PATIENCE)
        except ConnectionRefusedError:  # it has not begun to listen
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def flat(array, of):
    of["flat"].allreduce(array)


def hierarchy(array, of):
    chunks = numpy.array_split(array, of["inside"].k)
    of["between"].allreduce(of["inside"].reduce_scatter(chunks))
    of["inside"].allgather(chunks)


def measure(of, rank, size, repeats):
    """Both ways by turns, the first time to warm up; see `trials.run`."""
    found = {way.__name__: {"seconds": [], "cards": {}} for way in (flat, hierarchy)}
    k = of["flat"].k
    for _ in range(1 + repeats):
        for way in (flat, hierarchy):
            row, array = found[way.__name__], numpy.full(size, rank + 1, "float32")
            of["flat"].allreduce(numpy.zeros(k, "float32"))  # all begin together
            cards, before = _cards(), {name: ring.sent for name, ring in of.items()}
            begin = time.perf_counter()
            way(array, of)
            row["seconds"].append(time.perf_counter() - begin)
            row["sent"] = {name: of[name].sent - n for name, n in before.items()}
            of["flat"].allreduce(numpy.zeros(k, "float32"))  # all have ended
            row["sums"] = numpy.unique(array).tolist()
            row["cards"] = {name: n - cards[name] for name, n in _cards().items()}
    for row in found.values():
        del row["seconds"][0]
    return found


def _cards():
    """Bytes that each interface of this host has sent."""
    with open("/proc/net/dev") as file:
        rows = [line.partition(":") for line in file if ":" in line]
    return {name.strip(): int(numbers.split()[8]) for name, _, numbers in rows}


def main(told):
    of = rings(*(told[name] for name in ("rank", "hosts", "devices", "addresses")))
    print(json.dumps(measure(of, told["rank"], told["size"], told["repeats"])))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
