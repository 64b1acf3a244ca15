"""Exchanges over slow links: plain, and by what is said to help."""

from statistics import median

from . import job, links, wire, work

#: A name, the number of servers, the type of store, and whether it compresses.
ONE_SERVER = [
    ("plain", 1, "dist_sync", False),
    ("2-bit compression", 1, "dist_sync", True),
    ("dist_async", 1, "dist_async", False),
]
TWO_SERVERS = [
    ("two servers", 2, "dist_sync", False),
    ("two servers, compression", 2, "dist_sync", True),
]


def exchanges(mbit, sizes, steps, ways):
    """Exchanges on links of `mbit` Mbit/s, in `ways` with equally many servers."""
    rows = []
    with links.hosts(ways[0][1] + 2) as cluster:
        links.limit(cluster, mbit)
        for name, servers, kv_type, compress in ways:
            found = job.run(cluster, work.exchange, sizes, steps, compress,
                            num_servers=servers, kv_type=kv_type)  # fmt: skip
            rows.append({
                "name": name, "mbit": mbit, "measured": exchange_seconds(found),
                "predicted": wire.predicted(sizes, mbit, 2, servers, compress),
            })  # fmt: skip
    return rows


def batches(mbit, examples=256, sizes=(32, 64, 128)):
    """LeNet on links of `mbit` Mbit/s: seconds for so many `examples` a worker."""
    rows = []
    with links.hosts(3) as cluster:
        links.limit(cluster, mbit)
        for size in sizes:
            found = job.run(cluster, work.train, 1 + examples // size, size).check()
            steps = [max(pair) for pair in zip(*(r["seconds"] for r in found.results))]
            rows.append({"batch_size": size, "exchanges": examples // size,
                         "seconds": sum(steps[1:])})  # fmt: skip
    return rows


def exchange_seconds(found):
    """Seconds of an exchange, in an `Outcome`: the median, without the first."""
    found.check()
    return median(map(max, list(zip(*found.results))[1:]))
