"""What becomes of a ring of real processes when one of them is killed or stopped."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from job_checks import free_port

WORK = """
import json, sys
import d2l_ext, numpy
from d2l_ext.kvstore import ring
rank, places, shared = json.loads(sys.argv[1])
with ring.connect(rank, places, "secret", 2.0, shared) as r:
    x = r.zeros(300_000)
    print("begun", flush=True)
    while True:
        r.allreduce(x)
"""


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGSTOP])
def test_all_others_end_with_a_clear_error_in_time(signum, shared, n=3):
    before = set(Path("/dev/shm").iterdir())
    places = [("127.0.0.1", free_port()) for _ in range(n)]
    command = [sys.executable, "-c", WORK]
    ranks = [
        subprocess.Popen([*command, json.dumps([rank, places, shared])],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(n)
    ]  # fmt: skip
    try:
        assert [rank.stdout.readline() for rank in ranks] == ["begun\n"] * n
        time.sleep(random.random() / 5)
        begin, victim = time.monotonic(), random.randrange(n)
        ranks[victim].send_signal(signum)
        for number, rank in enumerate(ranks):
            if number != victim:
                _, text = rank.communicate(timeout=10)
                last = text.splitlines()[-1]
                assert rank.returncode == 1
                assert f"ring.RingError: rank {number}: " in last
                if signum == signal.SIGKILL:
                    assert f"rank {victim} has left the ring" in last
                else:
                    assert "no end after 2 s" in last or "has left the ring" in last
        # Two deadlines of the ring, and the end of a process.
        assert time.monotonic() - begin < (1.5 if signum == signal.SIGKILL else 4)
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
    assert set(Path("/dev/shm").iterdir()) == before
