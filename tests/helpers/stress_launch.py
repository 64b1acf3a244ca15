"""Many jobs in a row, and processes killed at random: `make stress`, or by hand.

    tests/helpers/stress_launch.py jobs 100             small jobs, one after the other
    tests/helpers/stress_launch.py jobs 100 --resend    the same with PS_RESEND=1
    tests/helpers/stress_launch.py cut 120 --seed 7     whoever, killed or stopped

Prints one line of JSON: how many were right, how many starts were repeated, the
longest time, and what was left behind. Exit code 1 when anything was.
"""

import d2l_ext  # noqa: F401, I001
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from job_checks import (
    JOBS, MARK, PYTHON, alive, claims, command, nodes_of, sleeping, wait_for,
)

import pslaunch as launch
from pslaunch import processes

SECONDS = 120  # more than that is a hang
BOUND = 10


def small(kv, value):
    """Push, pull, and see whether the sum is right."""
    import mxnet as mx

    kv.init("a", mx.nd.zeros(10))
    out = mx.nd.zeros(10)
    for step in range(5):
        kv.push("a", mx.nd.full(10, value + kv.rank + step))
        kv.pull("a", out=out)
        out.wait_to_read()  # pushes of arrays without connection have no order
    return out


def one_job(resend):
    env = {"PS_RESEND": 1, "PS_RESEND_TIMEOUT": 1000} if resend else {}
    clock = time.monotonic()
    job = launch.call_job(small, 3.0, num_servers=random.choice([1, 2]), env=env,
                          deadline=SECONDS, check=False)
    sums = [found.tolist() for found in job.results or []]
    return {
        "right": sums == [[15.0] * 10] * 2, "cause": job.cause, "notes": job.notes,
        "sums": sums,
        "attempts": job.attempts, "seconds": time.monotonic() - clock,
    }


#: A launcher that has less patience with processes that were stopped.
LAUNCHER = """
import sys
from pslaunch import __main__, supervise
supervise.SAID, supervise.ENDED = 1.0, 4.0
sys.exit(__main__.main())
"""
#: Steps, beside a daemon that hides: no variables, no parent, a session of its own.
HIDES = "setsid env -i sleep {} & exec {} {} dist_sync 200"
NODES = [("scheduler", 0), ("server", 0), ("worker", 0), ("worker", 1)]
CUTS = [(victim, signum, None) for victim in (*NODES, ("watchdog", 0))
        for signum in (signal.SIGKILL, signal.SIGSTOP)]
CUTS += [(("launcher", 0), signal.SIGKILL, None),
         (("launcher", 0), signal.SIGSTOP, signal.SIGCONT),
         (("launcher", 0), signal.SIGSTOP, signal.SIGKILL),
         (("watchdog", 0), signal.SIGKILL, signal.SIGKILL),
         (("watchdog", 0), signal.SIGSTOP, signal.SIGKILL)]


def expected(victim, signum, then):
    """Exit codes of a launcher that are right, and what it must say."""
    name, killed = "{} {}".format(*victim), signum == signal.SIGKILL
    if then == signal.SIGKILL:  # perhaps the launcher had ended before
        return ({-9, 137} if killed else {-9}), ""
    if victim[0] == "launcher":
        return ({-9}, "") if killed else ({0}, "ended well")
    if victim[0] == "watchdog":
        return ({137}, "the job failed: the watchdog was ended by SIGKILL") if killed \
            else ({0}, "was stopped; it is continued")
    why = "was ended by SIGKILL" if killed else "was stopped for 4 s"
    return {137 if killed else 147}, f"the job failed: {name} {why}"


def one_cut(chance, mark, hidden, folder):
    """Kill or stop one process of a job, from its first moment on; perhaps then the
    launcher. `hidden`: how long the daemons sleep, by which they are known.
    """
    victim, signum, then = chance.choice(CUTS)
    at_work, delay, later = (chance.random() < 0.6, chance.uniform(0, 2),
                             chance.uniform(0.5, 3))
    work = HIDES.format(hidden, PYTHON, JOBS / "steps.py")
    words = [PYTHON, "-c", LAUNCHER, "-n", "2", "-s", "1", "--deadline", str(SECONDS)]
    with open(folder / "out", "w") as out, open(folder / "err", "w") as err:
        process = subprocess.Popen([*words, "bash", "-c", work], stdout=out, stderr=err)

    def there():
        found = {("launcher", 0): process.pid, **nodes_of(mark)}
        for pid in processes.descendants(process.pid):
            if "pslaunch.agent" in command(pid):
                found["watchdog", 0] = pid
        begun = not at_work or "| step " in (folder / "out").read_text()
        return begun and found.get(victim)

    def is_over():
        return not alive(mark) and not sleeping(hidden)

    pid = wait_for(there, SECONDS)
    time.sleep(delay)
    os.kill(pid, signum)
    clock = time.monotonic()
    if then:
        time.sleep(later)
        process.send_signal(then)
    code, text = process.wait(SECONDS), (folder / "err").read_text()
    seconds = time.monotonic() - clock
    codes, words = expected(victim, signum, then)
    node_killed = at_work and victim in NODES and signum == signal.SIGKILL
    if code == -signal.SIGKILL:
        with suppress(AssertionError):
            wait_for(is_over, BOUND)
    return {
        "right": code in codes and words in text and is_over()
        and (seconds < BOUND or not node_killed),
        "what": [*victim, signum.name, then and then.name, at_work, round(delay, 2)],
        "cause": text, "code": code, "notes": [], "attempts": 1, "seconds": seconds,
    }


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
    }


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("what", choices=["jobs", "cut"])
    flags.add_argument("count", type=int)
    flags.add_argument("--resend", action="store_true")
    flags.add_argument("--limit", type=float, default=1e9, metavar="SECONDS",
                       help="begin no more after this time")
    flags.add_argument("--seed", type=int, default=random.randrange(10**6),
                       help="of the cuts: who, how and when")
    args = flags.parse_args()
    chance = random.Random(args.seed)
    mark, end = uuid4().hex, time.monotonic() + args.limit
    os.environ[MARK] = mark
    found, left, before = [], [], sockets()
    with tempfile.TemporaryDirectory() as logs, tempfile.TemporaryDirectory() as own:
        os.environ["TMPDIR"] = tempfile.tempdir = own
        while len(found) < args.count and time.monotonic() < end:
            hidden = f"{10**6 + os.getpid()}.{len(found)}"
            found.append(one_job(args.resend) if args.what == "jobs" else
                         one_cut(chance, mark, hidden, Path(logs)))
            now = left_behind(mark, own, before)
            if any(now.values()):
                left.append(now)
        tempfile.tempdir = None
    right = sum(one["right"] for one in found)
    print(json.dumps({
        "what": args.what, "resend": args.resend, "seed": args.seed,
        "cuts": [[*one["what"], one["code"]] for one in found if "what" in one],
        "done": len(found), "right": right,
        "starts repeated": sum(one["attempts"] - 1 for one in found),
        "longest": round(max(one["seconds"] for one in found), 2),
        "wrong": [one for one in found if not one["right"]], "left behind": left,
        "notes": [note for one in found for note in one["notes"]],
    }))
    return int(right < len(found) or bool(left))


if __name__ == "__main__":
    sys.exit(main())
