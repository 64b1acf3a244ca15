"""Jobs that hang: the launcher names the rank and the call; clean ones say nothing."""

import sys
import time
from pathlib import Path

import numpy
import pytest
from job_checks import nothing_left  # noqa: F401

import pslaunch as launch
from d2l_ext.clinic import flight_recorder

TIMEOUT = 2.0


def skips_in_memory(r, rank, n):
    x = r.zeros(1000)
    for number in range(4):
        if (rank, number) != (2, 2):
            r.allreduce(x)
        r.reduce_scatter(x)


def two_differ_while_the_third_is_in_the_call_before(r, rank, n):
    take, begun = r._take, time.monotonic()
    if rank == 1:  # nothing arrives for a while
        r._take = lambda place: take(place) if time.monotonic() > begun + 0.5 else 0
    r.broadcast(numpy.ones(12), 1)  # rank 1 receives a header, and no more
    r.allreduce(numpy.ones(24 if rank == 2 else 12))


def does_not_initialize(kv, rank, n):
    from mxnet import nd

    kv.init(0, nd.zeros(3))
    if rank != 1:
        kv.init(1, nd.zeros(3))
    time.sleep(8)


#: What a worker does, on a ring, a ring in shared memory or a type of store, with how
#: many ranks, and which of them are to be named in which operation.
HANGS = [
    (skips_in_memory, "memory", 3, {2}, "allreduce"),
    (does_not_initialize, "dist_sync", 3, {1}, "init"),
    (two_differ_while_the_third_is_in_the_call_before, "ring", 3, {2}, "allreduce"),
]


def worker(kv, work, on, folder):
    """Run `work` on a ring or on the store `kv`, recorded."""
    from d2l_ext.kvstore import ring

    comm = kv or ring.join(shared=on == "memory")
    comm.deadline = TIMEOUT  # of the calls, not of joining
    flight_recorder.attach(comm, folder, TIMEOUT)
    work(comm, comm.rank, comm.num_workers)
    if kv is None:
        comm.close()


@pytest.mark.parametrize("work, on, n, ranks, op", HANGS)
def test_the_launcher_names_rank_and_call_of_a_hang(
    tmp_path, nothing_left, work, on, n, ranks, op  # noqa: F811
):
    kv_type = None if on in ("ring", "memory") else on
    job = launch.call_job(worker, work, on, tmp_path, kv_type=kv_type, check=False,
                          num_workers=n, num_servers=int(bool(kv_type)), deadline=40)
    calls, lives = flight_recorder.read(tmp_path)
    found = flight_recorder.what_happened(calls, len(lives), lives)
    assert (set(found.ranks), found.call.op) == (ranks, op)
    first_line = found.text.split(":")[0].split("\n")[0]
    assert first_line in f"{job.cause}\n{job.last_lines(10)}"


def clean(kv, folder):
    from mxnet import nd

    from d2l_ext.kvstore import ring

    flight_recorder.attach(kv, folder, 5)
    with flight_recorder.attach(ring.join(5), Path(folder, "ring"), 5) as r:
        kv.init(0, nd.zeros(5))
        for _ in range(3):
            x = nd.ones(5)
            kv.push(0, x)
            kv.pull(0, out=x)
            y = r.allreduce(x.asnumpy())
        kv._barrier()
        return y.tolist(), len(r.recorder.alarms) + len(kv.recorder.alarms)


def test_a_job_without_a_fault_gives_no_alarm(tmp_path, nothing_left):  # noqa: F811
    found = launch.call(clean, tmp_path, num_workers=2, num_servers=1)
    assert found == [([4.0] * 5, 0)] * 2
    for folder, number in ((tmp_path, 5), (tmp_path / "ring", 4)):
        calls, lives = flight_recorder.read(folder)
        assert len(calls) == 2 * number and len(lives) == 2


@pytest.mark.parametrize("store", ["ring", "dist_sync"])
def test_the_trainer_records_its_calls_where_the_variable_says(store, tmp_path):
    job = launch.run(
        [sys.executable, "-m", "d2l_ext.train", "--kv-store", store,
         "--num-epochs", "1", "--num-examples", "256"],
        num_workers=2, num_servers=int(store != "ring"),
        env={flight_recorder.FOLDER: tmp_path})
    assert job.returncode == 0, job.last_lines()
    calls, _ = flight_recorder.read(tmp_path / "start-1")
    assert {c.rank for c in calls} == {0, 1}
    ops = {"ring": {"allreduce", "broadcast 0"}, "dist_sync": {"init", "push"}}[store]
    assert ops <= {c.op for c in calls}
    assert {c.nbytes > 0 for c in calls if c.op in ops} == {True}
