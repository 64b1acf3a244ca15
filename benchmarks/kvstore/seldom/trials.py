"""The series of the chapter: loss against time and bytes on slow links.

Each is a function without arguments whose result `bookkit.stored` can keep.
"""

from benchmarks.clusters.bad_networks import job
from d2l_ext.kvstore import ps_log

from . import worker


def run(cluster, exchanges, local_steps, *options):
    """Run one job of two workers and a server; return a row of what it took and
    reached.

    `local_steps`: of both workers, or of each in a list; 0 for gradients in each step.
    `options`: more of `worker.train`. `values`: bytes that the worker pushes which does
    not push the initial weights; `moved`: all bytes of a worker's host.
    """
    each = [local_steps] * 2 if isinstance(local_steps, int) else local_steps
    found = job.run(cluster, worker.train, exchanges, each if local_steps else 0,
                    *options, env={"PS_VERBOSE": 2}).check()
    row = min(found.results, key=lambda result: result["rank"])
    logs = [ps_log.messages(found.logs[f"worker-{i}"]) for i in (0, 1)]
    up = [sum(m.values for m in log if m.kind == "push" and m.sent) for log in logs]
    return {
        "local_steps": local_steps, "options": list(options), "exchanges": exchanges,
        "values": min(up),
        "moved": min(sum(found.moved[h.name]["eth0"]) for h in cluster.hosts[1:]),
        "seconds": [round(s, 4) for s in row["seconds"]],
        "losses": [round(x, 4) for x in row["losses"]],
    }


def ways(mbit, jobs):
    """Return a row per job, on links of `mbit` Mbit/s; `jobs`: `run`'s arguments."""
    with job.hosts(3) as cluster:
        job.limit(cluster, mbit)
        return [run(cluster, *one) for one in jobs]


# What `stored` keeps. Each takes less than a minute.


def links_100():
    """Run links of 100 Mbit/s: gradients in 128 steps, then more local steps."""
    return ways(100, [(128, 0), (32, 4), (12, 16), (4, 64), (12, 16, 0.7, 0.9)])


def links_10():
    """Return the same on 10 Mbit/s, with fewer steps."""
    return ways(10, [(48, 0), (4, 16), (3, 16, 0.7, 0.9)])


def slow_worker():
    """Let worker 1 rest 20 ms a step: as many steps for both, and a quarter."""
    more = 1.0, 0.0, 0.1, [0, 0.02]
    return ways(100, [(64, 0, *more), (8, 16, *more), (8, [16, 4], *more)])
