"""Measure steps over a distributed kvstore: types, workers, servers, settings.

    python -m benchmarks.kvstore.in_step
    python -m benchmarks.kvstore.in_step --only lenet --rounds 1

Every row with a store is a job of its own, on the loopback interface of this machine.
All rows take their turn in each round, so that a drift of the machine hits all alike.
"""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import d2l_ext  # noqa: F401  (before numpy's threads start)
import pslaunch as launch
from benchmarks import command, machine
from benchmarks.scale.rosetta import peers as others
from benchmarks.worker import ROOT

from . import in_step_work

HERE = Path(__file__).resolve().parent
WARM_UP, DEADLINE, IMAGES = 3, 600, 256
#: Elements of the arrays of a model: 20 MB and 100 MB of float32.
MODELS = {"20 MB": [1_000_000] * 5, "100 MB": [1_000_000] * 25}


@dataclass(frozen=True)
class Row:
    """`what`: `lenet`, a training step, or a model of `MODELS`, its exchange only.

    `workers` 0: one machine without a store. `kind`: a type of kvstore, or `gloo`.
    `against`: the row with which its time is compared.
    """

    id: str
    what: str
    kind: str = "dist_sync"
    workers: int = 2
    servers: int = 1
    devices: int = 1
    on_store: bool = False
    env: dict = field(default_factory=dict)
    against: str = ""


def _rows():
    yield Row("lenet-one-machine", "lenet", "", 0, 0)
    for n in (1, 2):
        yield Row(f"lenet-sync-{n}", "lenet", workers=n, against="lenet-one-machine")
    for kind, on_store in (("dist_sync", True), ("dist_sync_device", False),
                           ("dist_async", True)):
        yield Row(f"lenet-{kind[5:]}-2{'-on-store' * on_store}", "lenet", kind,
                  on_store=on_store, against="lenet-one-machine")
    for name in MODELS:
        size, base = name.split()[0], f"{name.split()[0]}-sync-2"
        for n in (2, 1, 3):
            yield Row(f"{size}-sync-{n}", name, workers=n, against=base)
        yield Row(f"{size}-sync-2-on-store", name, on_store=True, against=base)
        yield Row(f"{size}-async-2", name, "dist_async", on_store=True,
                  against=f"{base}-on-store")
        yield Row(f"{size}-2-servers", name, servers=2, against=base)
        yield Row(f"{size}-gloo-2", name, "gloo", servers=0, against=base)
    whole = {"MXNET_KVSTORE_BIGARRAY_BOUND": "100000000"}
    yield Row("20-2-servers-uncut", "20 MB", servers=2, env=whole,
              against="20-2-servers")
    local = {"DMLC_LOCAL": "1"}
    yield Row("20-unix-sockets", "20 MB", env=local, against="20-sync-2")
    for kind in ("dist_sync", "dist_sync_device"):
        yield Row(f"20-{kind[5:]}-4-devices", "20 MB", kind, devices=4,
                  against="20-sync-4-devices")
    for n in (1, 2):
        env = {"MXNET_KVSTORE_REDUCTION_NTHREADS": str(n)}
        yield Row(f"20-sync-4-devices-{n}-threads", "20 MB", devices=4, env=env,
                  against="20-sync-4-devices")


ROWS = list(_rows())


def seconds_of(row, steps, peer_python):
    """Return the seconds of each step of the slowest worker, after the warm-up."""
    steps += WARM_UP
    if row.kind == "gloo":
        command = [peer_python, HERE / "gloo_step.py", row.workers, steps,
                   sum(MODELS[row.what])]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True,
                              timeout=DEADLINE, check=False)
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise RuntimeError((said or [f"exit code {done.returncode}"])[-1])
        return json.loads(done.stdout.splitlines()[-1])[WARM_UP:]
    if not row.workers:
        return in_step_work.train(None, IMAGES, steps, False)[WARM_UP:]
    options = {"num_workers": row.workers, "num_servers": row.servers,
               "kv_type": row.kind, "env": row.env, "deadline": DEADLINE}
    if row.what == "lenet":
        found = launch.call(in_step_work.train, IMAGES, steps, row.on_store, **options)
    else:
        found = launch.call(in_step_work.exchange, MODELS[row.what], steps, row.devices,
                            row.on_store, **options)
    return [max(step) for step in zip(*found)][WARM_UP:]


def turns(rows, rounds, steps, peer_python):
    """Return `{id: [ms of each round]}`, and `{id: reason}` of rows left out."""
    ms, missing = {row.id: [] for row in rows}, {}
    for turn in range(rounds):
        for row in rows:
            if row.kind == "gloo" and peer_python is None:
                missing[row.id] = "not installed: make bench-peers"
            if row.id in missing:
                continue
            print(f"round {turn + 1} of {rounds}: {row.id}", file=sys.stderr)
            try:
                seconds = seconds_of(row, steps, peer_python)
                ms[row.id].append(round(1e3 * median(seconds), 3))
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
                missing[row.id] = str(error).splitlines()[0].replace(f"{ROOT}/", "")
    return ms, missing


def entries(rows, ms, missing):
    """Return the rows of the result; `ratio`: how many times as long as `against`."""
    found = []
    for row in rows:
        about = asdict(row)
        if row.id in missing:
            found.append({**about, "missing": missing[row.id]})
            continue
        pairs = zip(ms[row.id], ms.get(row.against, []))
        ratios = [a / b for a, b in pairs if row.against not in missing]
        ratio = round(median(ratios), 3) if ratios else None
        found.append({**about, "rounds_ms": ms[row.id],
                      "median_ms": median(ms[row.id]), "ratio": ratio})
    return found


def chosen(only=("",), peers=True):
    """Return rows whose id begins with one of `only`; gloo's only with `peers`."""
    rows = [row for row in ROWS if row.id.startswith(tuple(only))]
    if not rows:
        raise ValueError(
            f"no id begins with one of these; rows: {', '.join(r.id for r in ROWS)}")
    return [row for row in rows if peers or row.kind != "gloo"]


def measured(rounds=3, steps=12, peers=True, peer_python=None, only=("",)):
    """Measure steps over a distributed kvstore, by type and setting; and gloo."""
    rows = chosen(only, peers)
    if peer_python is None and others.DEFAULT.exists():
        peer_python = others.DEFAULT
    with machine.watched() as quiet:
        ms, missing = turns(rows, rounds, steps, peer_python)
    return {
        "quiet": quiet,
        "settings": {
            "rounds": rounds,
            "steps": steps,
            "warm_up_steps": WARM_UP,
            "images": IMAGES,
            "models": MODELS,
        },
        "rows": entries(rows, ms, missing),
    }


def check(only, **_):
    """Raise `ValueError` if no id begins with one of `only`."""
    try:
        chosen(only)
    except ValueError as error:
        raise ValueError(f"--only {' '.join(only)}: {error}") from None


main = partial(command.main, "distributed", measured, check=check,
               is_peer=lambda row: row["kind"] == "gloo")

if __name__ == "__main__":
    sys.exit(main())
