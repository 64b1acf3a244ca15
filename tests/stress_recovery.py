"""Jobs that lose a process or a host at a random moment, and end as if nothing was.

    python tests/stress_recovery.py local 20          a process is killed
    python tests/stress_recovery.py host 20           a host is switched off, in a box
    python tests/stress_recovery.py host 20 --seed 7  at other moments

The trainer runs under `--max-restarts` in `dist_sync`, with momentum. Its final state
is compared, bit by bit, with that of a job that nothing happened to. Prints a line for
each job, and one of JSON; exit code 1 when a job did not end or ended otherwise.
"""

import d2l_ext  # noqa: F401, I001
import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from uuid import uuid4

import numpy
from job_checks import CLI, MARK, PYTHON, alive, nodes_of

from d2l_ext import box
from d2l_ext.checkpoint import Checkpoints

RESTARTS, DEADLINE = 3, 150
TRAIN = [PYTHON, "-m", "d2l_ext.train", "--network", "mlp", "--batch-size", "32",
         "--num-epochs", "12", "--kv-store", "dist_sync", "--save-every", "5",
         "--disp-batches", "1", "--save-prefix"]  # fmt: skip
FLAGS = ["-n", "2", "-s", "2", "--deadline", DEADLINE, "--json"]


class Local:
    """Jobs on this machine, which lose a process."""

    def __init__(self, stack):
        self.mark = os.environ[MARK]

    def popen(self, words, **options):
        return subprocess.Popen([*CLI, *words], **options)

    def lose(self, choice):
        """Kill a node; its name, or None when there is none."""
        nodes = nodes_of(self.mark)
        if not nodes:
            return None
        node = choice(sorted(nodes))
        try:
            os.kill(nodes[node], signal.SIGKILL)
        except ProcessLookupError:  # it has just ended
            return None
        return "{} {}".format(*node)

    def repair(self):
        """Nothing stays broken."""

    def left(self):
        return alive(self.mark)


class Hosts:
    """Jobs over ssh on three hosts of a box, which lose a host."""

    def __init__(self, stack):
        self.cluster = stack.enter_context(box.Cluster(hosts=3))
        self.lost = None

    def popen(self, words, **options):
        hosts = ["--launcher", "ssh", "-H", self.cluster.hosts_file]
        return self.cluster.head.popen([*CLI, *hosts, *words], **options)

    def lose(self, choice):
        """Switch a host off, without a word to the others; its name."""
        self.lost = choice(self.cluster.hosts)
        self.lost.power_off()
        return self.lost.name

    def repair(self):
        if self.lost:
            self.lost.power_on()
        self.lost = None

    def left(self):
        return [pid for host in self.cluster.hosts for pid in host.processes()]


def run(place, folder, wait=None, choice=None, repair=None):
    """One job; after `wait` seconds something is lost, and back after `repair` more."""
    words = ["--max-restarts", RESTARTS, *FLAGS, *TRAIN, folder / "p"]
    clock, found = time.monotonic(), {"lost": None, "after": wait, "noticed": None}
    process = place.popen([str(word) for word in words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)  # fmt: skip
    told = []

    def listen():
        for line in process.stderr:
            told.append((time.monotonic(), line))

    def disturb():
        if over.wait(wait):
            return
        found["lost"], found["at"] = place.lose(choice), time.monotonic()
        if repair is not None and not over.wait(repair):
            place.repair()

    over = threading.Event()
    threads = [threading.Thread(target=listen)]
    threads += [threading.Thread(target=disturb)] if wait is not None else []
    for thread in threads:
        thread.start()
    with process:
        text = process.stdout.read()
        over.set()
        for thread in threads:
            thread.join()
    place.repair()
    noticed = [at for at, line in told if "; restart 1 of" in line]
    if noticed:
        found["noticed"] = round(noticed[0] - found["at"], 1)
    job = json.loads(text.splitlines()[-1]) if text else {"returncode": None}
    found.update(job=job, state=state(folder), said=[line for _, line in told][-5:])
    return {**found, "seconds": time.monotonic() - clock}


def state(folder):
    """The arrays of the last checkpoint: weights, momentum, counts."""
    loaded = Checkpoints(folder / "p").load()
    return loaded and loaded[1]


def same(these, those):
    """Whether two states are equal, bit by bit."""
    return bool(these and those) and these.keys() == those.keys() and all(
        numpy.array_equal(these[name], those[name]) for name in these)  # fmt: skip


def disturbed(place, folder, whole, draw):
    """A job that loses something within the time of the job `whole`; its verdict."""
    wait, back = draw.uniform(0, whole["seconds"]), draw.random() < 0.5
    found = run(place, folder, wait, draw.choice, draw.uniform(0, 20) if back else None)
    job = found["job"]
    right = job["returncode"] == 0 and same(found["state"], whole["state"])
    left = place.left()
    verdict = {
        "right": right and not left, "lost": found["lost"], "after": round(wait, 1),
        "restarts": job.get("restarts"), "noticed": found["noticed"],
        "seconds": round(found["seconds"], 1), "notes": job.get("notes"),
    }  # fmt: skip
    if not verdict["right"]:
        verdict.update(cause=job.get("cause"), left=left, said=found["said"])
    return verdict


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("what", choices=["local", "host"])
    flags.add_argument("count", type=int)
    flags.add_argument("--seed", type=int, default=0)
    flags.add_argument("--limit", type=float, default=1e9, metavar="SECONDS",
                       help="begin no more after this time")  # fmt: skip
    args = flags.parse_args()
    os.environ[MARK] = uuid4().hex
    draw, end, found = random.Random(args.seed), time.monotonic() + args.limit, []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        place = {"local": Local, "host": Hosts}[args.what](stack)
        whole = run(place, folder / "whole")
        assert whole["job"]["returncode"] == 0, whole
        print(f"undisturbed: {whole['seconds']:.1f} s", file=sys.stderr)
        for number in itertools.count():
            one = disturbed(place, folder / str(number), whole, draw)
            print(json.dumps(one), file=sys.stderr, flush=True)
            if one["lost"] or not one["right"]:  # else it was faster than usual
                found.append(one)
            if len(found) == args.count or time.monotonic() > end:
                break
    right = sum(one["right"] for one in found)
    noticed = [one["noticed"] for one in found if one["noticed"] is not None]
    print(json.dumps({
        "what": args.what, "seed": args.seed, "done": len(found), "right": right,
        "undisturbed": round(whole["seconds"], 1),
        "restarted": sum(bool(one["restarts"]) for one in found),
        "seconds to the restart": [median(noticed), max(noticed)] if noticed else None,
        "longest": max((one["seconds"] for one in found), default=None),
        "wrong": [one for one in found if not one["right"]],
    }))  # fmt: skip
    return int(right < len(found))


if __name__ == "__main__":
    sys.exit(main())
