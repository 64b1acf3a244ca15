"""Rings of processes to which something happens: `make stress`, or by hand.

    tests/helpers/stress_ring.py 30             six trials of each fault
    tests/helpers/stress_ring.py 30 --seed 7

Prints one line of JSON: how many were right, the longest time from the fault to the
end of all others, and what was left behind. Exit code 1 when anything was not right.
"""

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

from job_checks import MARK, alive, free_port, wait_for

#: Between the fault and the end of all others, in deadlines: a killed process is seen
#: at once; one that is silent by the deadline, and no more than a quarter of it until
#: one rank gives up, and again until the others do, who ask why; joining is a
#: connection, then a barrier. Each also needs time to end, less than it took to start.
BOUND = {"kill": 0, "stop": 1.5, "slow": 1.5, "token": 2, "stranger": 0}
WORK = """
import json, signal, sys, time
import d2l_ext, numpy
from d2l_ext.kvstore import ring
rank, places, token, shared, deadline = json.loads(sys.argv[1])
signal.signal(signal.SIGUSR1, lambda *_: time.sleep(2 * deadline))
print("joins", flush=True)
with ring.connect(rank, places, token, deadline, shared) as r:
    x = r.zeros(300_000)
    print("begun", flush=True)
    while True:
        x[:] = rank + 1
        if {*r.allreduce(x).tolist()} != {sum(range(len(places) + 1))}:
            print("a wrong sum", flush=True)
"""
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "slow": signal.SIGUSR1}


@lru_cache
def deadline_here():
    """Return seconds for a call of a ring, and for its joining: no less than two."""
    clock = time.monotonic()
    subprocess.run([sys.executable, "-c", "import d2l_ext, numpy"], check=True)
    return max(2.0, 2 * (time.monotonic() - clock))


class Strangers:
    """Connect to all `places` as soon as they listen, and note what they are told."""

    def __init__(self, places, chance):
        self.told, self.over = [], False
        self.words = [chance.choice([b"", b"GET / HTTP/1.0\r\n\r\n", bytes(100), None])
                      for _ in places]
        self.threads = [threading.Thread(target=self.visit, args=pair)
                        for pair in zip(places, self.words)]
        for thread in self.threads:
            thread.start()

    def visit(self, place, words):
        """Say `words`, and listen; None: go away at once."""
        while not self.over:
            with suppress(ConnectionRefusedError, ConnectionResetError):
                with socket.create_connection(place, 3) as link:
                    self.told.append(told := bytearray())
                    link.sendall(words or b"")
                    while words is not None and (came := link.recv(1000)):
                        told += came
                return

    def end(self):
        self.over = True
        for thread in self.threads:
            thread.join()


def trial(fault, chance, shared=(False, True)):
    """One ring of two to four processes, and one `fault`; what became of it, a dict.

    "wrong": what is not as it should be, a list.
    """
    n, shared = chance.randrange(2, 5), chance.choice(shared)
    places = [("127.0.0.1", free_port()) for _ in range(n)]
    victim, before = chance.randrange(n), {*Path("/dev/shm").iterdir()}
    tokens = ["secret"] * n
    if fault == "token":
        tokens[victim] = "guess"
    strangers = Strangers(places, chance) if fault == "stranger" else None
    # A silent stranger costs each rank a second, one rank after the other.
    deadline = deadline_here() + 4.0 * bool(strangers)
    start = time.monotonic()
    ranks = [subprocess.Popen([sys.executable, "-c", WORK, json.dumps(
        [rank, places, tokens[rank], shared, deadline])], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True) for rank in range(n)]
    try:
        begun = [rank.stdout.readline() for rank in ranks] == ["joins\n"] * n
        clock = time.monotonic()
        starting = clock - start
        if fault != "token":
            begun = [rank.stdout.readline() for rank in ranks] == ["begun\n"] * n
            time.sleep(chance.random() / 3)
            clock = time.monotonic()
            ranks[victim].send_signal(SIGNALS.get(fault, signal.SIGKILL))
        others = [i for i in range(n) if fault == "token" or i != victim]
        ends = {i: ranks[i].communicate(timeout=300) for i in others}
        seconds = time.monotonic() - clock
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
        if strangers:
            strangers.end()
    errors = [(err.splitlines() or [""])[-1] for _, err in ends.values()]
    clear = all(f"RingError: rank {i}: " in line for i, line in zip(ends, errors))
    named = fault not in ("kill", "stranger") or all(
        f"rank {victim} has left the ring" in line for line in errors)
    # Whoever said anything more has begun with a wrong token, or has a wrong sum.
    silent = not any(out for out, _ in ends.values())
    # A challenge, and that the answer to it was wrong.
    apart = all(b"#WELCOME#" not in told and len(told) <= 120
                for told in (strangers.told if strangers else ()))
    left = sorted({path.name for path in Path("/dev/shm").iterdir()} -
                  {path.name for path in before})
    bound = BOUND[fault] * deadline + n * starting
    facts = {"begun": begun, "clear": clear, "named": named, "silent": silent,
             "apart": apart, "in time": seconds < bound, "no memory left": not left}
    return {"fault": fault, "n": n, "shared": shared, "victim": victim,
            "seconds": round(seconds, 2), "bound": round(bound, 2), "errors": errors,
            "wrong": [name for name, so in facts.items() if not so]}


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("count", type=int)
    flags.add_argument("--seed", type=int, default=random.randrange(10**6))
    args = flags.parse_args()
    os.environ[MARK] = mark = uuid4().hex
    chance, faults, found = random.Random(args.seed), [*BOUND], []
    for i in range(args.count):
        found.append(trial(faults[i % len(faults)], chance))
        wait_for(lambda: not alive(mark), 5)
    wrong = [one for one in found if one["wrong"]]
    longest = {fault: max([one["seconds"] for one in found if one["fault"] == fault],
                          default=None) for fault in faults}
    print(json.dumps({
        "seed": args.seed, "done": len(found), "right": len(found) - len(wrong),
        "longest": longest, "wrong": wrong}))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
