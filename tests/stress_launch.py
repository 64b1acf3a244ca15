"""Many jobs in a row, and processes killed at random: `make stress`, or by hand.

    python tests/stress_launch.py jobs 100             small jobs, one after the other
    python tests/stress_launch.py jobs 100 --resend    the same with PS_RESEND=1
    python tests/stress_launch.py kill 20              tries for each role

Prints one line of JSON: how many were right, how many starts were repeated, the
longest time, and what was left behind. Exit code 1 when anything was.
"""

import d2l_ext  # noqa: F401, I001
import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

from job_checks import JOBS, MARK, PYTHON, alive, claims, nodes_of, wait_for

from d2l_ext import launch

SECONDS = 120  # more than that is a hang
BOUND = 10


def small(kv, value):
    """Push, pull, and see whether the sum is right."""
    kv.init("a", mx.nd.zeros(10))  # noqa: F821, imported there
    out = mx.nd.zeros(10)  # noqa: F821
    for step in range(5):
        kv.push("a", mx.nd.full(10, value + kv.rank + step))  # noqa: F821
        kv.pull("a", out=out)
        out.wait_to_read()  # pushes of arrays without connection have no order
    return out


def one_job(resend):
    env = {"PS_RESEND": 1, "PS_RESEND_TIMEOUT": 1000} if resend else {}
    clock = time.monotonic()
    job = launch.call_job(small, 3.0, num_servers=random.choice([1, 2]), env=env,
                          deadline=SECONDS, check=False)  # fmt: skip
    sums = [found.tolist() for found in job.results or []]
    return {
        "right": sums == [[15.0] * 10] * 2, "cause": job.cause, "notes": job.notes,
        "sums": sums,
        "attempts": job.attempts, "seconds": time.monotonic() - clock,
    }  # fmt: skip


def one_kill(role, folder, mark):
    """Kill one process of `role` at a random moment of the training."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(launch.run, [PYTHON, str(JOBS / "steps.py")],
                             log_dir=folder, deadline=SECONDS)  # fmt: skip
        logs = [folder / f"worker-{i}.log" for i in (0, 1)]
        wait_for(lambda: all(f.exists() and b"step 2" in f.read_bytes() for f in logs),
                 SECONDS)  # fmt: skip
        time.sleep(random.uniform(0, 0.5))
        nodes = nodes_of(mark)
        rank = random.choice([i for who, i in nodes if who == role])
        clock = time.monotonic()
        os.kill(nodes[role, rank], signal.SIGKILL)
        job = future.result()
        seconds = time.monotonic() - clock
    for log in logs:
        log.unlink()
    named = job.cause == f"{role} {rank} was ended by SIGKILL"
    return {
        "right": job.returncode == 137 and named and seconds < BOUND,
        "cause": job.cause, "notes": job.notes, "attempts": job.attempts,
        "seconds": seconds,
    }  # fmt: skip


def sockets():
    """The files of nodes that talk by sockets in the file system (`DMLC_LOCAL`)."""
    return {str(path) for path in Path("/tmp").glob("[0-9]*") if path.is_socket()}


def left_behind(mark, temporary, before):
    """What no job may leave: processes, files, claims on ports.

    `before`: the `sockets` that were there before the first job.
    """
    return {
        "processes": alive(mark), "claims": claims(),
        "files": [path.name for path in Path(temporary).iterdir()],
        "nodes' files": sorted(sockets() - before),
    }  # fmt: skip


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("what", choices=["jobs", "kill"])
    flags.add_argument("count", type=int)
    flags.add_argument("--resend", action="store_true")
    flags.add_argument("--limit", type=float, default=1e9, metavar="SECONDS",
                       help="begin no more after this time")  # fmt: skip
    args = flags.parse_args()
    mark, end = uuid4().hex, time.monotonic() + args.limit
    os.environ[MARK] = mark
    found, left, before = [], [], sockets()
    with tempfile.TemporaryDirectory() as logs, tempfile.TemporaryDirectory() as own:
        os.environ["TMPDIR"] = tempfile.tempdir = own
        tasks = [None] * args.count
        if args.what == "kill":
            tasks = ["worker", "server", "scheduler"] * args.count
        for role in tasks:
            if time.monotonic() > end:
                break
            one = one_kill(role, Path(logs), mark) if role else one_job(args.resend)
            found.append({"role": role, **one})
            now = left_behind(mark, own, before)
            if any(now.values()):
                left.append(now)
        tempfile.tempdir = None
    right = sum(one["right"] for one in found)
    print(json.dumps({
        "what": args.what, "resend": args.resend, "done": len(found), "right": right,
        "starts repeated": sum(one["attempts"] - 1 for one in found),
        "longest": round(max(one["seconds"] for one in found), 2),
        "wrong": [one for one in found if not one["right"]], "left behind": left,
        "notes": [note for one in found for note in one["notes"]],
    }))  # fmt: skip
    return int(right < len(found) or bool(left))


if __name__ == "__main__":
    sys.exit(main())
