#!/usr/bin/env python3
"""Runs a command as another machine would: slower, busier, or with more cores.

    tools/on_machine.py half-a-core make book
    tools/on_machine.py two-neighbours .venv/bin/python -m pytest tests/pslaunch

What a book measures must not fail on a machine that its authors never saw. Each
profile changes one thing that differs between machines; the exit status is the
command's. Limits on a processor's time need root, and control groups (`man 7
cgroups`) of either version.
"""

import argparse
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

PERIOD = 100_000  # microseconds in which a share of a core is given out
GROUPS = Path("/sys/fs/cgroup")
#: A neighbour ends with the process that started it, however that ends.
NEIGHBOUR = """
import ctypes, signal
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
"""
COMPUTES = NEIGHBOUR + """
while True:
    pass
"""
#: Copies between two blocks that no cache holds.
COPIES = NEIGHBOUR + """
here, there = bytearray(256 << 20), memoryview(bytearray(256 << 20))
while True:
    there[:] = here
"""
#: Each block that is freed goes back to the system, and comes back page by page.
GIVE_BACK = {
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "MALLOC_TOP_PAD_": "0",
}


@contextmanager
def share_of_cores(share):
    """Limit this process and its children to the time of `share` cores (0.5: half one).

    Raises `OSError` if that is not allowed.
    """
    name, quota = f"on-machine-{os.getpid()}", int(share * PERIOD)
    if (GROUPS / "cgroup.controllers").exists():  # version 2
        with suppress(OSError):
            (GROUPS / "cgroup.subtree_control").write_text("+cpu")
        group, home = GROUPS / name, GROUPS / "cgroup.procs"
        limits = {"cpu.max": f"{quota} {PERIOD}"}
    else:
        group, home = GROUPS / "cpu" / name, GROUPS / "cpu" / "cgroup.procs"
        limits = {"cpu.cfs_period_us": PERIOD, "cpu.cfs_quota_us": quota}
    group.mkdir()
    try:
        for file, value in limits.items():
            (group / file).write_text(str(value))
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        # What the command left behind goes back as well: a group is removed empty.
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):
                home.write_text(pid)
        group.rmdir()


@contextmanager
def first_cores(count):
    """Run this process and its children on only `count` cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    yield
    os.sched_setaffinity(0, before)


@contextmanager
def neighbours(program, count):
    """Run the Python `program` in `count` other processes meanwhile."""
    command = [sys.executable, "-c", program]
    running = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


#: name: (what it plays, what is entered for it).
PROFILES = {
    "plain": ("this machine as it is", lambda: ()),
    "half-a-core": ("half of one core's time", lambda: (share_of_cores(0.5),)),
    "one-core": ("a single core", lambda: (first_cores(1),)),
    "two-neighbours": (
        "two other programs that compute without pause",
        lambda: (neighbours(COMPUTES, 2),),
    ),
    "memory-hog": (
        "another program that takes the memory's bandwidth",
        lambda: (neighbours(COPIES, 1),),
    ),
    "first-touch": (
        "freed memory goes back to the system, and comes again page by page",
        lambda: (patch.dict(os.environ, GIVE_BACK),),
    ),
    "eight-cores": (
        "four threads for each device, as one would set where there are eight cores",
        lambda: (patch.dict(os.environ, OMP_NUM_THREADS="4"),),
    ),
}


def main(arguments):
    """Run a command under a profile, as `arguments` say; return its exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="profiles:\n" + "\n".join(
            f"  {name:15} {about}" for name, (about, _) in PROFILES.items()
        ),
    )
    parser.add_argument("profile", choices=PROFILES, metavar="PROFILE")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND …")
    args = parser.parse_args(arguments)
    if not args.command:
        parser.error("name the command to run, for example: make test")
    _, entered = PROFILES[args.profile]
    with ExitStack() as stack:
        try:
            for change in entered():
                stack.enter_context(change)
        except OSError as error:
            advice = " Run this as root." if isinstance(error, PermissionError) else ""
            print(f"{args.profile} is impossible here: {error}.{advice}",
                  file=sys.stderr)
            return 2
        return run(args.command)


def run(command):
    """Run `command`; return its exit status.

    Control-C is the command's to answer, and SIGTERM is passed on to it.
    """
    process = subprocess.Popen(command)
    answers = {signal.SIGINT: lambda *_: None,
               signal.SIGTERM: lambda *_: process.terminate()}
    before = {number: signal.signal(number, do) for number, do in answers.items()}
    try:
        code = process.wait()
        return 128 - code if code < 0 else code
    finally:
        for number, answer in before.items():
            signal.signal(number, answer)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
