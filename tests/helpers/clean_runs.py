"""Runs without a fault, in which the flight recorder must stay silent.

    tests/helpers/clean_runs.py 200             half on rings, half on a store
    tests/helpers/clean_runs.py 200 --busy 2    beside two processes that compute

A run has its own recorders and some tens of calls, between which ranks compute for
random times, below the time-out. Prints how many there were, and their alarms.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import d2l_ext  # noqa: F401  (before MXNet)
import pslaunch as launch
from d2l_ext.clinic import flight_recorder

TIMEOUT = 2.0


class Through:
    """A store whose recorded methods can be put back: those of `kv`, called through."""

    def __init__(self, kv):
        self.kv, self.rank, self.num_workers = kv, kv.rank, kv.num_workers
        self.type = kv.type

    def init(self, *args): return self.kv.init(*args)
    def broadcast(self, *args): return self.kv.broadcast(*args)
    def push(self, *args): return self.kv.push(*args)
    def pushpull(self, *args): return self.kv.pushpull(*args)
    def _barrier(self): return self.kv._barrier()


def computes(chance):
    time.sleep(chance.choice([0, 0, 0, 0.01, 0.02, TIMEOUT / 8]))


def on_rings(_, runs, folder, seed):
    """The alarms of a worker in `runs` rings, one after the other."""
    from d2l_ext.kvstore import ring

    alarms = []
    for run in range(runs):
        common = random.Random(seed + run)  # the calls are the same on all ranks
        r = ring.join(shared=common.random() < 0.3)
        own = random.Random(1000 * run + r.rank)
        with flight_recorder.attach(r, Path(folder, str(run))):
            r.deadline = TIMEOUT * 5
            x = r.zeros(common.randrange(1, 5000))
            for _ in range(10):
                computes(own)
                op = common.choice(flight_recorder.RING[:5])
                getattr(r, op)(*[] if op == "barrier" else [x])
        alarms += r.recorder.alarms
    return [str(alarm) for alarm in alarms]


def on_a_store(kv, runs, folder, seed):
    """The alarms of a worker in `runs` times some steps on a store."""
    from mxnet import nd

    alarms, arrays = [], [nd.ones(7 + i) for i in range(4)]
    for key, x in enumerate(arrays):
        kv.init(key, x)
    for run in range(runs):
        own = random.Random(1000 * run + kv.rank)
        store = flight_recorder.attach(Through(kv), Path(folder, str(run)), TIMEOUT)
        for _ in range(4):
            for key, x in enumerate(arrays):
                computes(own)
                store.push(key, x)
                kv.pull(key, out=x)
                x[:] = 1
        store._barrier()
        store.recorder.close()
        alarms += store.recorder.alarms
    return [str(alarm) for alarm in alarms]


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("runs", type=int)
    flags.add_argument("--busy", type=int, default=0)
    args = flags.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(args.busy)]
    alarms, done = [], 0
    try:
        for n, work in ((3, on_rings), (2, on_a_store)):
            with tempfile.TemporaryDirectory(prefix="clean-") as folder:
                is_store = work is on_a_store
                found = launch.call(
                    work, args.runs // 2, folder, random.randrange(10**6),
                    kv_type="dist_sync" if is_store else None, num_workers=n,
                    num_servers=int(is_store))
            alarms += [alarm for own in found for alarm in own]
            done += args.runs // 2
    finally:
        for process in busy:
            process.kill()
            process.wait()
    print(f"{done} runs without a fault, alarms: {len(alarms)}", *alarms[:5], sep="\n")
    return int(bool(alarms))


if __name__ == "__main__":
    sys.exit(main())
