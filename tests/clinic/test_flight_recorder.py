"""Recorders on rings of threads: what is kept, what is reported, what it changes."""

import subprocess
import sys
import time

import numpy
import pytest
from rings import on_ring

from d2l_ext.clinic import flight_recorder
from d2l_ext.clinic.flight_recorder import LINES, attach, read, what_happened


def recorded(n, work, folder, shared=False, deadline=1.0):
    """What `work` returns or raises on each rank of a recorded ring."""
    return on_ring(n, lambda r: work(attach(r, folder)), shared, deadline)


def every_call(r):
    x = r.zeros((4, 3))
    r.allreduce(x)
    r.reduce_scatter(x)
    r.allgather(x)
    r.broadcast(x, root=1)
    r.barrier()


@pytest.mark.parametrize("shared", [False, True])
def test_each_call_is_kept_with_its_size_and_line(tmp_path, shared):
    recorded(2, every_call, tmp_path, shared)
    calls, lives = read(tmp_path)
    first, *own = [c for c in calls if c.rank == 1]
    assert first.name == "attach number 1"
    ops = ["zeros"] * shared + ["allreduce", "reduce_scatter", "allgather",
                                "broadcast 1", "barrier"]
    assert [(c.number, c.op) for c in own] == [*enumerate(ops, 1)]
    assert {(c.nbytes, c.shape) for c in own[-5:-1]} == {(48, "(4, 3) float32")}
    line = every_call.__code__.co_firstlineno + 2
    assert own[-5].where == f"test_flight_recorder.py:{line} in every_call"
    assert {c.state for c in calls} == {"ended"}
    assert {life.where for life in lives.values()} == {"its end"}
    assert what_happened(calls, 2, lives) is None


def test_a_heartbeat_that_comes_after_the_end_leaves_the_end(tmp_path):
    recorder = flight_recorder.FlightRecorder(0, 1, tmp_path)
    recorder.close()
    recorder._beat()
    assert read(tmp_path)[1][0].where == "its end"


#: Threads that look where they are, while the collector frees records of earlier
#: recorders; with each it lets other threads run.
BUSY = """
import gc, mmap, threading, time
import d2l_ext
from d2l_ext.clinic.flight_recorder import _frame_of

def look():
    while time.monotonic() < end:
        for _ in range(3):
            earlier = [mmap.mmap(-1, 4096)]
            earlier.append(earlier)
        _frame_of(threading.get_ident())

gc.set_threshold(5)
end = time.monotonic() + 3
looking = [threading.Thread(target=look) for _ in range(3)]
for thread in looking:
    thread.start()
for thread in looking:
    thread.join()
"""


def test_recorders_of_one_process_do_not_wait_for_each_other_forever():
    subprocess.run([sys.executable, "-c", BUSY], check=True, timeout=120)


def test_a_ring_gives_the_same_sums_and_returns_what_it_returned(tmp_path):
    def work(r):
        x = numpy.full(6, r.rank + 1.0)
        return r.allreduce(x) is x, x.tolist(), r.barrier(), r.reduce_scatter(x).size

    assert recorded(3, work, tmp_path) == [(True, [6.0] * 6, None, 2)] * 3


def test_a_ring_counts_the_calls_as_the_verdict_does(tmp_path):
    def work(r):
        r.barrier()
        r.allreduce(numpy.ones(8 + r.rank))

    for error in recorded(2, work, tmp_path):
        assert "makes call 2: allreduce" in str(error)
        assert "\nranks differ in call 2:" in str(error)


def test_an_error_that_is_nobody_elses_fault_stays_as_it_is(tmp_path):
    def work(r):
        r.allreduce([1, 2])

    with pytest.raises(TypeError, match="^x is a list: make it a NumPy array$"):
        raise recorded(2, work, tmp_path)[0]


def test_a_file_keeps_the_last_calls_and_says_since_when(tmp_path):
    def work(r):
        for _ in range(LINES + 7):
            r.barrier()
        r.recorder._sign()

    recorded(2, work, tmp_path)
    calls, lives = read(tmp_path)
    own = sorted(c.number for c in calls if c.rank == 0)
    assert own == [*range(8, LINES + 8)]  # and not that of attaching
    oldest = min(c.time for c in calls if c.rank == 0)
    assert lives[0].oldest == pytest.approx(oldest, abs=1e-5)
    assert what_happened(calls, 2, lives) is None


def test_records_of_an_earlier_job_are_replaced(tmp_path):
    for count in (5, 2):
        recorded(2, lambda r, count=count: [r.barrier() for _ in range(count)],
                 tmp_path)
    assert len(read(tmp_path)[0]) == 2 * (1 + 2)


def test_a_folder_without_records_is_refused_by_name(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"^{tmp_path}: no rank"):
        read(tmp_path)


def test_the_command_says_what_happened(tmp_path, capsys):
    recorded(2, lambda r: r.barrier(), tmp_path)
    flight_recorder.main(tmp_path)
    recorded(2, lambda r: r.rank or r.barrier(), tmp_path, deadline=0.3)
    flight_recorder.main(tmp_path)
    said = capsys.readouterr().out
    assert said.startswith("All ranks have made the same calls.\n"
                           "rank 1 is missing from ")


class Store:
    """A store whose calls return at once, as those of MXNet do."""

    def __init__(self, rank, num_workers, kind="dist_sync"):
        self.rank, self.num_workers, self.type = rank, num_workers, kind

    def init(self, key, value): ...
    def broadcast(self, key, value, out): ...
    def push(self, key, value, priority=0): ...
    def pushpull(self, key, value, out=None): ...
    def _barrier(self): ...


def waits(folder, kind="dist_sync", timeout=0.6):
    """The recorder of rank 0, which has pushed key 3 twice, and rank 1 only once."""
    first, second = (attach(Store(rank, 2, kind), folder, timeout) for rank in (0, 1))
    x = numpy.ones((5, 2), "float32")
    first.push(3, x)
    second.pushpull(key=3, value=[x, x])
    first.push([4, 3], [x, [x]])
    second.push(4, x)
    time.sleep(timeout + 1)
    for store in (first, second):
        store.recorder.close()
    return first.recorder.alarms, second.recorder.alarms


def test_a_push_that_others_have_not_made_is_reported_where_one_waits(tmp_path, capsys):
    waiting, missing = waits(tmp_path)
    assert missing == []
    assert [(v.ranks, v.call.name, v.call.nbytes) for v in waiting] == [
        ((1,), "push 3 number 2", 40)]
    assert "no end after 0.6 s\nrank 1 is missing" in capsys.readouterr().err


def test_pushes_to_an_asynchronous_store_wait_for_nobody(tmp_path):
    assert waits(tmp_path, "dist_async") == ([], [])
