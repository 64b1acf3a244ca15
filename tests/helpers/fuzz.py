"""Trials of files that somebody damaged or made up: what the fuzzers share.

Each trial runs in a fork of this process, which has imported everything. The fork may
take 2 GB of address space (`--memory`) beyond what this process has by then, and
`--seconds`; and nothing in a file may be executed: audit events of pickle, of new
processes, of libraries and of the system's calls, and what `Executed` would make, tell.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

FORBIDDEN = ("pickle.find_class", "subprocess.", "os.system", "os.exec", "os.spawn",
             "os.posix_spawn", "os.fork", "pty.", "socket.connect",
             "ctypes.dlopen")


class Executed:
    """Unpickled, it makes the folder `EXECUTED` in the working directory."""

    def __reduce__(self):
        return os.mkdir, ("EXECUTED",)


def damaged(data, rng):
    """Some bytes, changed as disks and networks and people change them; and how."""
    data, at, other = bytearray(data), *(rng.randrange(len(data)) for _ in "ab")
    how = rng.choice(["flip", "flip", "cut", "zeros", "insert", "more", "numbers"])
    near = min(rng.choice([32, 600, len(data)]), len(data))  # more in the headers
    if how == "flip":
        for _ in range(rng.choice([1, 1, 2, 8, 64])):
            data[rng.randrange(near)] ^= 1 << rng.randrange(8)
    elif how == "cut":
        data = rng.choice([data[:at], data[at:], data[:at] + data[other:]])
    elif how == "zeros":
        data[at : at + 4096] = bytes(len(data[at : at + 4096]))
    elif how == "insert":
        data[at:at] = rng.randbytes(rng.choice([1, 100]))
    elif how == "more":
        data = data + rng.choice([data, data[at:], data[:at], bytes(at),
                                  rng.randbytes(at)])
    else:  # sizes and offsets, in the headers at the beginning and at the end
        at, width = rng.choice([at, rng.randrange(near)]), rng.choice([2, 4, 8])
        data[at : at + width] = rng.choice([b"\xff", b"\x7f", b"\0"]) * width
    return how, bytes(data)


LINKS = {"dangling": "nowhere", "linked": "own", "zeros": "/dev/zero",
         "long link": "x" * 300}


def no_file(path, rng):
    """Put something else where a file was: no file, a link, an endless one.

    Returns what, in a word. What was there lies beside it then, as `own`.
    """
    own = path.rename(path.with_name("own"))
    how = rng.choice(["folder", "full folder", "pipe", "socket", "loop", *LINKS,
                      "empty", "sparse", "longer"])
    if "folder" in how:
        path.mkdir()
        if how == "full folder":
            shutil.copy(own, path / path.name)
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "socket":
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(path))
    elif how in ("empty", "sparse", "longer"):
        path.write_bytes(own.read_bytes() if how == "longer" else b"")
        if how != "empty":
            os.truncate(path, rng.choice([1 << 32, 1 << 40]))
    else:
        path.symlink_to(LINKS.get(how, path.name))
    return f"no file: {how}"


def trial(read, outcome, folder, memory=2 * 10**9, seconds=60):
    """Call `read(folder)` in a fork: how it ended, and what it said on standard error.

    `outcome(code, lines, folder)` says how, in words; what no trial may end with begins
    with capital letters.
    """
    said = folder.with_suffix(".said")
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        _alone(read, folder, said, memory)
    until = time.monotonic() + seconds
    while not (done := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return f"NOT DONE after {seconds} s", said.read_text(errors="replace")
        time.sleep(0.005)
    lines = said.read_text(errors="replace")
    if (folder / "EXECUTED").exists() or "EXECUTED" in lines:
        return "EXECUTED", lines
    if "Traceback" in lines:
        return "TRACEBACK", lines
    return outcome(os.waitstatus_to_exitcode(done[1]), lines, folder), lines


def _alone(read, folder, said, memory):
    """The fork's life. It ends here, whatever happens."""
    code = 70
    try:
        os.chdir(folder)
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        sys.addaudithook(_watch)
        taken = int(Path("/proc/self/statm").read_text().split()[0])
        limit = taken * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        code = read(folder)
    finally:
        if sys.exc_info()[0]:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)


def _watch(event, arguments):
    if event.startswith(FORBIDDEN):
        os.write(2, f"EXECUTED {event} {arguments}\n".encode())


def main(about, spoil, outcome, argv=None):
    """Run the trials, print the counts; 1 when one ended as none may, and is kept.

    `spoil(number, folder, rng)` puts files into a folder; it gives what was done, in
    words, and the function that reads them. `outcome`: see `trial`.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of a trial")
    parser.add_argument("--memory", type=int, default=2 * 10**9, help="bytes")
    parser.add_argument("--seconds", type=float, default=60, help="for each trial")
    args = parser.parse_args(argv)
    root = Path(tempfile.mkdtemp(prefix="fuzz-"))
    counts, bad, longest = {}, 0, 0
    for number in range(args.first, args.first + args.count):
        folder = root / str(number)
        folder.mkdir()
        rng = random.Random(f"{args.seed} {number}")
        what, read = spoil(number, folder, rng)
        begin = time.monotonic()
        ended, lines = trial(read, outcome, folder, args.memory, args.seconds)
        longest = max(longest, time.monotonic() - begin)
        if ended[:2].isupper():
            bad += 1
            print(f"{ended}: {what}, number {number}, {folder}\n{lines}", flush=True)
        else:
            shutil.rmtree(folder)
            folder.with_suffix(".said").unlink()
        counts.setdefault(what, Counter())[ended] += 1
    for what, ends in sorted(counts.items()):
        print(f"{what:27}", json.dumps(dict(ends.most_common())))
    total = sum(counts.values(), Counter())
    print(f"{'all':27}", json.dumps(dict(total.most_common())))
    print(f"{bad} of {args.count} ended as none may; the longest took {longest:.1f} s")
    if not bad:
        shutil.rmtree(root)
    return int(bad > 0)
