"""Jobs that lose a process or a host at a random moment, and end as if nothing was.

    tests/helpers/stress_recovery.py local 20          a process is killed
    tests/helpers/stress_recovery.py host 20           a host is switched off, in a box
    tests/helpers/stress_recovery.py host 20 --seed 7  at other moments

The trainer runs under `--max-restarts` in `dist_sync`, with momentum. Its final state
is compared, bit by bit, with that of a job that nothing happened to. Prints a line for
each job, and one of JSON; exit code 1 when a job did not end or ended otherwise.
"""

import d2l_ext  # noqa: F401, I001
import argparse
import json
import sys
import time
from contextlib import ExitStack
from statistics import median

import netbox as box
from benchmarks.recovery import story, trials


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("what", choices=["local", "host"])
    flags.add_argument("count", type=int)
    flags.add_argument("--seed", type=int, default=0)
    flags.add_argument("--limit", type=float, default=1e9, metavar="SECONDS",
                       help="begin no more after this time")  # fmt: skip
    args = flags.parse_args()
    end, found = time.monotonic() + args.limit, []
    with ExitStack() as stack:
        place = story.Local() if args.what == "local" else story.Hosts(
            stack.enter_context(box.Cluster(hosts=3)))  # fmt: skip
        row = trials.trials(place, args.seed)
        stack.callback(row.close)
        seconds = next(row)
        while len(found) < args.count and time.monotonic() < end:
            found.append(next(row))
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    right = sum(one["right"] for one in found)
    noticed = [one["noticed"] for one in found if one["noticed"]]
    print(json.dumps({
        "what": args.what, "seed": args.seed, "done": len(found), "right": right,
        "undisturbed": round(seconds, 1),
        "restarted": sum(bool(one["restarts"]) for one in found),
        "seconds to the restart": [median(noticed), max(noticed)] if noticed else None,
        "most steps done again": max((one["again"] for one in found), default=0),
        "longest": max((one["seconds"] for one in found), default=None),
        "wrong": [one for one in found if not one["right"]],
    }))  # fmt: skip
    return int(right < len(found))


if __name__ == "__main__":
    sys.exit(main())
