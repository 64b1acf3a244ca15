"""Which cases are measured to find the constants, which to see whether they predict."""

from statistics import median

from d2l_ext.pipeline.schedule import gpipe
from pslaunch import call

from . import workloads
from .cases import BLOCK_WIDTH, PIPELINE_WIDTH

MB = 10**6
SIZES = (MB, 3 * MB, 6 * MB)
#: Steps of a case in a job that are not counted.
WARM_UP = 2

#: These give the constants: at most three devices or workers.
FITTED = [
    *[(way, k, n) for way in workloads.REDUCE for k in (2, 3) for n in SIZES],
    *[(kind, k, n) for kind in ("local", "device") for k in (2, 3) for n in SIZES],
    *[("gradient", n) for n in (16, 32, 96, 160, 256)],
    *[("step", "naive", k, n) for k, n in ((2, 96), (2, 320), (3, 192))],
    *[("stage", b, r, 4) for b in (2, 4, 6) for r in (64, 128)],
    *[("block", r, h) for r in (64, 256) for h in (512, 1024, 1536)],
    *[("dist", n, 1, a, b) for n in (1, 2)
      for a, b in ((8, MB // 2), (4, 4 * MB), (12, 12 * MB))],
    *[("dist compressed", n, 1, a, b) for n in (1, 2)
      for a, b in ((8, MB // 2), (12, 12 * MB))],
    *[("dist lenet", n, 1, batch)
      for n, batch in ((1, 96), (2, 96), (2, 384), (3, 192))],
]

#: No constant is fitted to these.
UNSEEN = [
    *[(way, 4, 5 * MB) for way in workloads.REDUCE],
    ("naive", 2, 5 * MB), ("ring", 2, 5 * MB),
    ("local", 4, 5 * MB), ("device", 4, 5 * MB), ("local", 2, 5 * MB),
    ("step", "naive", 2, 192), ("step", "naive", 2, 448), ("step", "naive", 4, 256),
    ("step", "tree", 4, 320), ("step", "ring", 2, 256),
    ("pipeline", (4, 4), 64, 4), ("pipeline", (4, 4), 128, 8),
    ("pipeline", (6, 2), 128, 4),
    ("layerwise", 2, 64, 2048), ("layerwise", 2, 256, 2048),
    ("dist", 2, 1, 8, 8 * MB), ("dist", 3, 1, 8, 8 * MB), ("dist", 3, 1, 12, 12 * MB),
    ("dist", 2, 2, 8, 8 * MB),
    ("dist lenet", 2, 1, 192), ("dist lenet", 3, 1, 384),
    ("dist compressed", 3, 1, 8, 8 * MB),
]


def action(case):
    """Return the step of a case that needs no job: a function without arguments."""
    kind, *numbers = case
    if kind in workloads.REDUCE:
        return workloads.reduce(kind, *numbers)
    if kind in ("local", "device"):
        return workloads.store(kind, *numbers)
    if kind in ("stage", "pipeline"):
        blocks, rows, chunks = numbers
        blocks = [blocks] if kind == "stage" else blocks
        return workloads.pipeline(gpipe, blocks, rows, chunks, PIPELINE_WIDTH)
    if kind in ("block", "layerwise"):
        k, rows, hidden = numbers if kind == "layerwise" else (1, *numbers)
        return workloads.layerwise(k, rows, BLOCK_WIDTH, hidden)
    make = {"gradient": workloads.gradient, "step": workloads.data_parallel}
    return make[kind](*numbers)


def measure(chosen, rounds=7, steps=12, passes=1):
    """Return the median seconds of the cases in the list `chosen`: a dict.

    `rounds`: turns of a case in this process, and three times as many where a case
    takes milliseconds. Cases of one family take turns with each other, so that they
    need not all be in memory. `steps`: of each case of a job. There is a job for each
    number of workers and servers; all jobs are run `passes` times, in turns.
    """
    groups = _groups(chosen)
    in_jobs = [group for group in groups if group[0][0].startswith("dist")]
    seconds = {case: [] for case in chosen}
    for group in in_jobs * passes:
        for case, found in _job(group, steps).items():
            seconds[case] += found
    for group in groups:
        if group not in in_jobs:
            short = group[0][0] in (*workloads.REDUCE, "local", "device")
            actions = {case: action(case) for case in group}
            seconds.update(workloads.turns(actions, 3 * rounds if short else rounds))
    return {case: median(seconds[case]) for case in chosen}


def _groups(chosen):
    """Return lists of cases that are measured together."""
    families = {"step": "gradient", "pipeline": "stage", "layerwise": "block",
                "device": "local"}
    groups = {}
    for case in chosen:
        key = families.get(case[0], case[0])
        if case[0].startswith("dist"):
            key = ("compressed" in case[0], *case[1:3])
        groups.setdefault(key, []).append(case)
    return list(groups.values())


def _job(group, steps):
    """Run a job: seconds of `steps` steps of each case, of the slowest worker.

    A job takes some seconds to start, so it measures all cases of a `group`. Raises
    `LaunchError` when it fails.
    """
    workers, servers = group[0][1:3]
    lenet = [case for case in group if case[0] == "dist lenet"]
    others = [case for case in group if case not in lenet]
    found = call(_work, [list(case[3:]) for case in others],
                 [case[3] for case in lenet], steps + WARM_UP,
                 "compressed" in group[0][0], num_workers=workers,
                 num_servers=servers, deadline=600)
    return {
        case: [max(step) for step in zip(*(seconds[i] for seconds in found))][WARM_UP:]
        for i, case in enumerate(others + lenet)
    }


def _work(kv, exchanges, batches, steps, compressed):
    """Run in each worker: return a list of seconds for each case.

    `exchanges`: pairs of (arrays, bytes in all) to push and pull. `batches`: images
    of all workers together, for steps of LeNet.
    """
    if compressed:
        workloads.compress(kv)
    exchange = workloads.exchange
    found = [exchange(kv, i, *case, steps) for i, case in enumerate(exchanges)]
    return found + (workloads.train(kv, batches, steps) if batches else [])
