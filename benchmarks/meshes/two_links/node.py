"""One device: a process that exchanges arrays over sockets, by both ways in turn.

    python -m benchmarks.meshes.two_links.node '{"rank": 0, …}'

`trials.run` makes the argument. The process prints its measurements as JSON. It imports
no MXNet, so that eight of them start in a moment.
"""

import json
import sys
import time

import numpy

from d2l_ext.kvstore.ring import connect

PORT = 9300


def rings(rank, hosts, devices, addresses, token):
    """Return the rings of a device: through all, inside of its host, between the hosts.

    `addresses`: of each device, on the inner and on the outer network. A device listens
    where the one before it in the ring can reach it on the network that both are on.
    """
    k, host = hosts * devices, rank // devices
    of = {
        "flat": range(k),
        "inside": range(host * devices, (host + 1) * devices),
        "between": range(rank % devices, k, devices),
    }
    found = {}
    for number, (name, members) in enumerate(of.items()):
        places = []
        for i, member in enumerate(members):
            outer = members[i - 1] // devices != member // devices
            places.append((addresses[member][outer], PORT + k * number + member))
        found[name] = connect(members.index(rank), places, token)
    return found


def flat(array, of):
    of["flat"].allreduce(array)


def hierarchy(array, of):
    of["between"].allreduce(of["inside"].reduce_scatter(array))
    of["inside"].allgather(array)


def measure(of, rank, size, repeats):
    """Run both ways by turns, the first time to warm up; see `trials.run`."""
    found = {way.__name__: {"seconds": []} for way in (flat, hierarchy)}
    for _ in range(1 + repeats):
        for way in (flat, hierarchy):
            row, array = found[way.__name__], numpy.full(size, rank + 1, "float32")
            of["flat"].barrier()
            cards, before = _cards(), {name: ring.sent for name, ring in of.items()}
            begin = time.perf_counter()
            way(array, of)
            row["seconds"].append(time.perf_counter() - begin)
            row["sent"] = {name: of[name].sent - n for name, n in before.items()}
            of["flat"].barrier()
            row["sums"] = numpy.unique(array).tolist()
            row["cards"] = {name: n - cards[name] for name, n in _cards().items()}
    for row in found.values():
        del row["seconds"][0]
    return found


def _cards():
    """Return the bytes that each interface of this host has sent."""
    with open("/proc/net/dev") as file:
        rows = [line.partition(":") for line in file if ":" in line]
    return {name.strip(): int(numbers.split()[8]) for name, _, numbers in rows}


def main(told):
    size, repeats = told.pop("size"), told.pop("repeats")
    of = rings(**told)
    print(json.dumps(measure(of, told["rank"], size, repeats)))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
