"""One exchange of gradients, four ways: over a store, around rings, by gloo.

    make result NAME=process_ring
"""

import d2l_ext  # noqa: F401, I001  (before numpy)
import json
import subprocess
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy
from mxnet import np, npx

import pslaunch as launch
from benchmarks.scale.rosetta import peers

HERE = Path(__file__).resolve().parent
ELEMENTS, ARRAYS, STEPS, WARM_UP = 5_000_000, 5, 14, 4


def exchanges(kv, elements, arrays, steps):
    """Return the seconds of each step, by way.

    All ways take their turn in each step, in the processes of one job.
    """
    from d2l_ext.kvstore import dist_train, ring

    parts = [np.zeros(elements // arrays) for _ in range(arrays)]
    for key, part in enumerate(parts):
        kv.init(key, part)

    def store(_):
        for key, part in enumerate(parts):
            kv.push(key, part)
            kv.pull(key, out=part)
        npx.waitall()

    seconds = {"store": [], "ring": [], "memory": []}
    with ring.join(60, shared=True) as r:
        own, seen = numpy.zeros(elements, "float32"), r.zeros(elements)
        ways = {"store": store, "ring": lambda r: r.allreduce(own),
                "memory": lambda r: r.allreduce(seen)}
        for _ in range(steps):
            for name, way in ways.items():
                dist_train.finish(kv)
                r.barrier()
                begin = perf_counter()
                way(r)
                seconds[name].append(perf_counter() - begin)
    return seconds


def by_gloo(workers):
    """Return the seconds of each step of PyTorch's gloo, of the slower process."""
    command = [peers.DEFAULT, HERE / "gloo_step.py", workers, STEPS, ELEMENTS]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True,
                          timeout=600, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(rounds=2):
    """Return the ms of a step, by workers, servers and way: a list, a median of each
    round.
    """
    found = {}
    for _ in range(rounds):
        for workers, servers in ((2, 1), (2, 2), (3, 1)):
            row = found.setdefault(f"{workers} workers, {servers} servers", {})
            results = launch.call(exchanges, ELEMENTS, ARRAYS, STEPS,
                                  num_workers=workers, num_servers=servers,
                                  deadline=600)
            for name in results[0]:
                steps = [max(step) for step in zip(*(r[name] for r in results))]
                row.setdefault(name, []).append(_ms(steps))
            if servers == 1:
                row.setdefault("gloo", []).append(_ms(by_gloo(workers)))
    return found


def _ms(steps):
    return round(1e3 * median(steps[WARM_UP:]), 2)
