"""Measure a step of push and pull, plain and compressed, on fast and on slow links.

    python -m benchmarks.kvstore.compression

Two workers and a server on this machine. A slow link is the loopback interface of a
network namespace of its own, with a limit set by `tc`; the machine's own interfaces
are not touched, and the namespace ends with the job. Needs Linux, `unshare`, `ip`,
`tc` and `iptables`, and root or the permission to make user namespaces.
"""

import d2l_ext  # noqa: F401, I001  (before numpy's threads start)
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median

import mxnet as mx

import pslaunch as launch
from benchmarks import command, machine
from benchmarks.worker import ROOT
from d2l_ext.kvstore.compression import packed_size

WORKERS, THRESHOLD, WARM_UP = 2, 0.5, 1
#: A small model: elements of its arrays, float32.
SIZES = [250_000] * 4


@dataclass(frozen=True)
class Link:
    """`mbit`: the limit in Mbit/s, None for no limit; `what`: bytes it applies to."""

    id: str
    name: str
    mbit: int = None
    what: str = "all"


LINKS = [
    Link("loopback", "loopback, no limit"),
    Link("shared-1000", "one link of 1 Gbit/s for all", 1000),
    Link("shared-100", "one link of 100 Mbit/s for all", 100),
    Link("uplink-100", "100 Mbit/s to the server, no limit back", 100, "push"),
]


def predicted_seconds(link, compressed):
    """Return the seconds a step's bytes need on `link`; None without a limit."""
    if link.mbit is None:
        return None
    pull = sum(4 * size for size in SIZES)
    push = sum(packed_size(size) for size in SIZES) if compressed else pull
    nbytes = push if link.what == "push" else push + pull
    return WORKERS * nbytes * 8 / (link.mbit * 1e6)


def limit(link):
    """Give the loopback interface of this network namespace its limit."""
    rate = f"rate {link.mbit}mbit burst 256k"
    run("ip link set lo up")
    if link.what == "all":
        run(f"tc qdisc add dev lo root tbf {rate} latency 1s")
    else:  # a class with a limit; which packets are in it, a worker says
        run("tc qdisc add dev lo root handle 1: htb default 10")
        run("tc class add dev lo parent 1: classid 1:10 htb rate 100gbit")
        run(f"tc class add dev lo parent 1: classid 1:20 htb {rate}")


def run(command):
    subprocess.run(command.split(), check=True, stderr=subprocess.DEVNULL)


def step_times(kv, sizes, steps, threshold, uplink):
    """Return the seconds of `steps` steps, plain, then compressed; in each worker."""
    import subprocess
    from pathlib import Path
    from time import perf_counter

    if uplink and kv.rank == 0:
        # The ports of the job ascend: the scheduler's, the server's, the workers'.
        rows = [r.split() for r in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        ports = sorted({int(r[1].split(":")[1], 16) for r in rows if r[3] == "0A"})
        rule = f"-p tcp --dport {ports[1]} -j CLASSIFY --set-class 1:20"
        rule = f"iptables -t mangle -A OUTPUT {rule}"
        subprocess.run(rule.split(), check=True)
    gradients = [mx.nd.ones(size) for size in sizes]
    weights = [mx.nd.zeros(size) for size in sizes]
    times = {}
    for way in ("plain", "compressed"):
        if way == "compressed":
            kv.set_gradient_compression({"type": "2bit", "threshold": threshold})
            kv._barrier()
        keys = [f"{way} {i}" for i in range(len(sizes))]
        kv.init(keys, weights)
        times[way] = []
        for _ in range(steps):
            mx.nd.waitall()
            kv._barrier()
            start = perf_counter()
            kv.push(keys, gradients)
            kv.pull(keys, out=weights)
            mx.nd.waitall()
            times[way].append(perf_counter() - start)
    return times


def measure(link, steps):
    """Run the job, on `link`; seconds of each step of the slower worker, by way."""
    words = [sys.executable, "-m", "benchmarks.kvstore.compression", "--inside",
             link.id, str(steps)]
    if link.mbit is not None:
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        words = ["unshare", "--net", *user, *words]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600,
                          cwd=ROOT, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError(f"{link.name}: {said[-1]}")
    by_rank = json.loads(done.stdout.splitlines()[-1])
    return {way: [max(pair) for pair in zip(*(r[way] for r in by_rank))][WARM_UP:]
            for way in by_rank[0]}


def entry(link, steps):
    """Return what was measured on a link, for the result; or why it was not."""
    about = asdict(link)
    try:
        seconds = measure(link, steps)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        return {**about, "missing": str(error).replace(f"{ROOT}/", "")}
    ways = {
        way: {"median_s": round(median(times), 4),
              "predicted_s": predicted_seconds(link, way == "compressed"),
              "seconds": [round(t, 4) for t in times]}
        for way, times in seconds.items()
    }
    ratio = ways["plain"]["median_s"] / ways["compressed"]["median_s"]
    return {**about, **ways, "ratio": round(ratio, 3)}


def measured(steps=6):
    """Push and pull 4 MB, plain and compressed, on fast and on slow links."""
    with machine.watched() as quiet:
        rows = [entry(link, steps) for link in LINKS]
    return {
        "quiet": quiet,
        "settings": {
            "workers": WORKERS,
            "servers": 1,
            "threshold": THRESHOLD,
            "sizes": SIZES,
            "steps": steps,
            "warm_up_steps": WARM_UP,
        },
        "rows": rows,
    }


def job(id, steps):
    """Run the job of the link `id` in this network namespace; print its seconds."""
    (link,) = (link for link in LINKS if link.id == id)
    if link.mbit is not None:
        limit(link)
    print(json.dumps(launch.call(
        step_times, SIZES, steps, THRESHOLD, link.what == "push",
        num_workers=WORKERS, deadline=600,
    )))


main = partial(command.main, "compression", measured)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        job(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main())
