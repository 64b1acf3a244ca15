"""Hangs to be named by the flight recorder: add one with `@hang`, and try them.

    tests/helpers/hangs.py                 all, one line each, and how many were named
    tests/helpers/hangs.py skips uneven    those whose names contain one of the words

A hang is a function of a ring or a store, its rank and the number of ranks; it runs in
each worker of a job of `pslaunch`, with the recorder attached. It says which ranks are
to be named, and in which operation:

    @hang("ring", n=3, ranks={1}, op="barrier")
    def rank_1_skips_the_barrier(r, rank, n):
        r.allreduce(numpy.ones(4))
        if rank != 1:
            r.barrier()
        r.allreduce(numpy.ones(4))

`on`: "ring", "memory" (a ring in shared memory), or a type of store. Printed to
standard output is what the launcher would say to its user.
"""

import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy

import d2l_ext  # noqa: F401  (before MXNet)
import pslaunch as launch
from d2l_ext.clinic import flight_recorder

TIMEOUT = 2.0
HANGS = []


@dataclass(frozen=True)
class Hang:
    on: str
    n: int
    ranks: frozenset
    op: str
    work: object

    @property
    def name(self):
        return f"{self.work.__name__} ({self.on}, {self.n})"


def hang(on, n, ranks, op):
    """Register a function as a hang of `n` ranks, to be named by `ranks` and `op`."""
    def add(work):
        HANGS.append(Hang(on, n, frozenset(ranks), op, work))
        return work

    return add


def worker(kv, work, on, folder, timeout):
    """Run `work` on a ring or on the store `kv`, recorded."""
    from d2l_ext.kvstore import ring

    comm = kv or ring.join(shared=on == "memory")
    comm.deadline = timeout  # of the calls, not of joining
    flight_recorder.attach(comm, folder, timeout)
    rank, n = comm.rank, comm.num_workers
    work(comm, rank, n)
    if kv is None:
        comm.close()


@dataclass
class Trial:
    """What became of a hang: the ranks and operation that were named, the seconds from
    the time-out to the verdict, and what the launcher says."""

    ranks: tuple
    op: str
    late: float
    said: str

    def names(self, hang):
        return set(self.ranks) == hang.ranks and self.op == hang.op


def run(hang, timeout=TIMEOUT, deadline=40.0):
    """Run a `Hang` as a job; return its `Trial`."""
    with tempfile.TemporaryDirectory(prefix="hang-") as folder:
        kv_type = None if hang.on in ("ring", "memory") else hang.on
        job = launch.call_job(
            worker, hang.work, hang.on, folder, timeout, kv_type=kv_type, check=False,
            num_workers=hang.n, num_servers=1 if kv_type else 0, deadline=deadline,
            log_dir=str(Path(folder, "logs")))
        return judge(job, folder, timeout)


def judge(job, folder, timeout):
    """The `Trial` that the records in `folder` and the launcher's words make."""
    said = f"{job.cause}\n{job.last_lines(10)}"
    try:
        calls, lives = flight_recorder.read(folder)
    except FileNotFoundError as error:
        return Trial((), "", 0.0, f"{error}\n{said}")
    found = flight_recorder.what_happened(calls, len(lives), lives)
    if not found or found.text.split(":")[0].split("\n")[0] not in said:
        return Trial((), "", 0.0, said)
    begun = min(c.time for c in calls if c.name == found.call.name)
    late = Path(job.logs[job.culprit]).stat().st_mtime - begun - timeout
    return Trial(found.ranks, found.call.op, max(late, 0.0), said)


# ---- On rings ----

OPS = ("allreduce", "reduce_scatter", "allgather", "broadcast", "barrier")


def make(r, op, x):
    """Make the call `op` of a ring; all but a barrier take the array `x`."""
    getattr(r, op)(*[] if op == "barrier" else [x])


for op, n, who in zip(OPS, (2, 3, 4, 3, 2), (1, 0, 2, 1, 0)):
    @hang("ring", n, {who}, "broadcast 0" if op == "broadcast" else op)
    def skips_one(r, rank, n, op=op, who=who):
        x = numpy.ones((10, 10), "float32")
        for number in range(4):
            for each in OPS:
                if (number, each, rank) != (2, op, who):
                    make(r, each, x)


for op, n, who in zip(OPS, (4, 2, 3, 2, 4), (3, 0, 1, 1, 0)):
    @hang("ring", n, {who}, "broadcast 0" if op == "broadcast" else op)
    def uneven(r, rank, n, op=op, who=who):
        for _ in range(7 - (rank == who)):
            make(r, op, numpy.ones(100))
        time.sleep(5 * (rank == who))  # on with something else


@hang("ring", 3, {2}, "allreduce")
def another_order(r, rank, n):
    grads = [numpy.ones(size) for size in (10, 20, 30)]
    for number in range(3):
        for i in (2, 1, 0) if (rank, number) == (2, 1) else (0, 1, 2):
            r.allreduce(grads[i])


@hang("ring", 2, {0}, "allreduce")
def another_order_in_the_third_step(r, rank, n):
    for number in range(4):
        calls = [lambda: r.allreduce(numpy.ones(8)), lambda: r.broadcast(numpy.ones(2))]
        for call in calls[:: -1 if (rank, number) == (0, 2) else 1]:
            call()


@hang("ring", 4, {1}, "allreduce")
def two_shapes(r, rank, n):
    r.broadcast(numpy.zeros(50))
    r.allreduce(numpy.ones((5, 10 + (rank == 1))))


@hang("ring", 3, {0}, "reduce_scatter")
def two_types(r, rank, n):
    r.reduce_scatter(numpy.ones(12, "float64" if rank == 0 else "float32"))


@hang("ring", 4, {3}, "broadcast 0")
def another_root(r, rank, n):
    r.broadcast(numpy.ones(4), 3 if rank == 3 else 0)


@hang("ring", 4, {0, 2}, "barrier")
def two_of_four_skip_the_barrier(r, rank, n):
    r.allreduce(numpy.ones(4))
    if rank % 2:
        r.barrier()
    time.sleep(6)


@hang("ring", 3, {1}, "allreduce")
def sleeps(r, rank, n):
    for number in range(5):
        time.sleep(6 * ((rank, number) == (1, 3)))
        r.allreduce(numpy.ones(4))


@hang("ring", 2, {0}, "allreduce")
def an_endless_loop(r, rank, n):
    r.allreduce(numpy.ones(4))
    while rank == 0:
        pass
    r.allreduce(numpy.ones(4))


@hang("ring", 3, {2}, "reduce_scatter")
def is_killed(r, rank, n):
    r.allreduce(numpy.ones(4))
    if rank == 2:
        os._exit(0)
    r.reduce_scatter(numpy.ones(9))


@hang("ring", 3, {1}, "allreduce")
def is_stopped(r, rank, n):
    for number in range(1000):
        if (rank, number) == (1, 3):
            os.kill(os.getpid(), signal.SIGSTOP)
        r.allreduce(numpy.ones(4))


@hang("ring", 2, {1}, "allreduce")
def left_out_long_ago(r, rank, n):
    x = numpy.ones(4)
    for number in range(1500):
        if (rank, number) != (1, 20):
            r.allreduce(x)
    time.sleep(5 * rank)


for n, who in ((2, 0), (3, 2), (4, 1)):
    @hang("memory", n, {who}, "allreduce")
    def skips_in_memory(r, rank, n, who=who):
        x = r.zeros(1000)
        for number in range(4):
            if (rank, number) != (who, 2):
                r.allreduce(x)
            r.reduce_scatter(x)


@hang("memory", 2, {1}, "zeros")
def allocates_on_one_rank_only(r, rank, n):
    r.zeros(10)
    if rank == 0:
        r.zeros(20)
    time.sleep(6 * rank)


@hang("ring", 3, {2}, "allreduce")
def two_differ_while_the_third_is_in_the_call_before(r, rank, n):
    take, begun = r._take, time.monotonic()
    if rank == 1:  # nothing arrives for a while
        r._take = lambda place: take(place) if time.monotonic() > begun + 0.5 else 0
    r.broadcast(numpy.ones(12), 1)  # rank 1 receives a header, and no more
    r.allreduce(numpy.ones(24 if rank == 2 else 12))


# ---- On stores ----


def keys(kv, sizes=(10, 20, 30)):
    """Zeros on the store, a key for each size; and an array of ones for each."""
    from mxnet import nd

    for key, size in enumerate(sizes):
        kv.init(key, nd.zeros(size))
    return [nd.ones(size) for size in sizes]


def exchange(kv, key, x):
    """Push and pull, and wait for the sum, as a step does before its update."""
    kv.push(key, x)
    kv.pull(key, out=x)
    x.wait_to_read()


for n, who in ((2, 1), (3, 0), (4, 2)):
    @hang("dist_sync", n, {who}, "push")
    def skips_a_key(kv, rank, n, who=who):
        arrays = keys(kv)
        for number in range(4):
            for key, x in enumerate(arrays):
                if (rank, number, key) != (who, 2, 1):
                    exchange(kv, key, x)


for n, who in ((2, 0), (3, 1), (4, 3)):
    @hang("dist_sync", n, {who}, "push")
    def uneven_on_a_store(kv, rank, n, who=who):
        arrays = keys(kv)
        for _ in range(5 - (rank == who)):
            for key, x in enumerate(arrays):
                exchange(kv, key, x)
        kv._barrier()


@hang("dist_sync", 2, {0, 1}, "push")
def crossed(kv, rank, n):
    arrays = keys(kv)
    for key in (0, 1) if rank == 0 else (1, 0):
        exchange(kv, key, arrays[key])


@hang("dist_sync", 3, {2}, "barrier")
def skips_a_barrier_on_a_store(kv, rank, n):
    keys(kv)
    if rank != 2:
        kv._barrier()
    time.sleep(8)


@hang("dist_sync", 3, {1}, "init")
def does_not_initialize(kv, rank, n):
    from mxnet import nd

    kv.init(0, nd.zeros(3))
    if rank != 1:
        kv.init(1, nd.zeros(3))
    time.sleep(8)


@hang("dist_sync", 2, {1}, "push")
def sleeps_on_a_store(kv, rank, n):
    arrays = keys(kv)
    for number in range(4):
        time.sleep(8 * ((rank, number) == (1, 2)))
        exchange(kv, 0, arrays[0])


@hang("dist_sync", 2, {0}, "push")
def is_stopped_on_a_store(kv, rank, n):
    arrays = keys(kv)
    for number in range(1000):
        if (rank, number) == (0, 5):
            os.kill(os.getpid(), signal.SIGSTOP)
        exchange(kv, 2, arrays[2])


@hang("dist_async", 2, {0}, "barrier")
def skips_a_barrier_out_of_step(kv, rank, n):
    from mxnet import optimizer

    kv.set_optimizer(optimizer.create("sgd"))
    arrays = keys(kv)
    for _ in range(3 + rank):
        exchange(kv, 0, arrays[0])
    if rank:
        kv._barrier()
    time.sleep(8)


@hang("dist_sync", 3, {1}, "push")
def two_shapes_on_a_store(kv, rank, n):
    from mxnet import nd

    keys(kv)
    exchange(kv, 1, nd.ones(20))
    exchange(kv, 1, nd.ones(15 if rank == 1 else 20))


@hang("dist_sync", 2, {0}, "push")
def two_shapes_of_one_key_after_some_steps(kv, rank, n):
    from mxnet import nd

    arrays = keys(kv)
    for number in range(4):
        for key, x in enumerate(arrays):
            late = (rank, number, key) == (0, 3, 2)
            exchange(kv, key, nd.ones(10) if late else x)


@hang("dist_device_sync", 4, {0, 3}, "push")
def two_of_four_have_fewer_batches(kv, rank, n):
    arrays = keys(kv)
    for _ in range(4 if rank in (0, 3) else 5):
        for key, x in enumerate(arrays):
            kv.pushpull(key, x, out=x)
            x.wait_to_read()
    kv._barrier()


# ---- Twenty more, by an author who had no part in the recorder ----


@hang("ring", 3, {0}, "allreduce")
def rank_0_alone_waits_for_its_evaluation(r, rank, n):
    for number in range(3):
        r.allreduce(numpy.ones(6))
        if rank == 0 and number == 1:
            r.barrier()


@hang("ring", 3, {2}, "allreduce")
def a_batch_with_nan_is_left_out(r, rank, n):
    for number in range(5):
        try:
            loss = numpy.nan if (rank, number) == (2, 3) else 0.5
            if numpy.isnan(loss):
                raise FloatingPointError(loss)
        except FloatingPointError:
            continue
        r.allreduce(numpy.full(8, loss))
    time.sleep(5)


@hang("ring", 4, {1}, "allreduce")
def one_rank_stops_early(r, rank, n):
    for epoch in range(4):
        for _ in range(3):
            r.allreduce(numpy.ones(20))
        if rank == 1 and epoch == 1:  # its own loss is low enough
            break
    time.sleep(5)


@hang("ring", 2, {1}, "allreduce")
def one_rank_accumulates_longer(r, rank, n):
    for number in range(1, 9):
        if number % (4 if rank else 2) == 0:
            r.allreduce(numpy.ones(20))
    time.sleep(5 * rank)


@hang("ring", 3, {2}, "allreduce")
def a_layer_is_unused_on_one_rank(r, rank, n):
    layers = [numpy.ones(size) for size in (9, 16, 25, 36)]
    for number in range(3):
        for i, grad in enumerate(layers):
            if (rank, number, i) != (2, 1, 2):
                r.allreduce(grad)


@hang("ring", 3, {1}, "broadcast 0")
def the_wrong_rank_takes_itself_for_the_root(r, rank, n):
    r.allreduce(numpy.ones(4))
    r.broadcast(numpy.ones(40), 1 if rank == 1 else 0)


@hang("ring", 4, {0}, "allreduce")
def only_the_logging_rank_gathers(r, rank, n):
    for number in range(4):
        r.allreduce(numpy.ones(12))
        if rank == 0 and number == 2:
            r.allgather(numpy.ones(4))


@hang("ring", 3, {1}, "reduce_scatter")
def a_lock_is_taken_twice(r, rank, n):
    import threading

    lock = threading.Lock()
    for number in range(3):
        with lock:
            if (rank, number) == (1, 2):
                lock.acquire()
        r.reduce_scatter(numpy.ones(9))


@hang("ring", 2, {0}, "broadcast 0")
def rank_0_waits_for_an_empty_pipe(r, rank, n):
    r.allreduce(numpy.ones(4))
    if rank == 0:
        os.read(os.pipe()[0], 1)
    r.broadcast(numpy.ones(4))


@hang("ring", 4, {3}, "allgather")
def one_rank_leaves_with_status_0(r, rank, n):
    for number in range(3):
        r.allreduce(numpy.ones(4))
        if (rank, number) == (3, 1):
            sys.stdout.flush()
            os._exit(0)
        r.allgather(numpy.ones(8))


@hang("memory", 3, {1}, "allreduce")
def one_rank_writes_a_long_checkpoint(r, rank, n):
    x = r.zeros(300)
    for number in range(4):
        if (rank, number) == (1, 2):
            time.sleep(7)
        r.allreduce(x)


@hang("memory", 2, {0}, "allgather")
def one_rank_trusts_its_old_parameters(r, rank, n):
    x = r.zeros(64)
    for number in range(3):
        r.reduce_scatter(x)
        if (rank, number) != (0, 2):
            r.allgather(x)
    time.sleep(6 * (rank == 0))


@hang("ring", 3, {1, 2}, "allreduce")
def rank_0_has_one_batch_more(r, rank, n):
    for _ in range(6 if rank == 0 else 5):
        r.allreduce(numpy.ones(10))
    time.sleep(6 * (rank > 0))


@hang("ring", 3, {1}, "allgather")
def one_rank_gathers_fewer_rows(r, rank, n):
    r.barrier()
    r.allgather(numpy.ones((3 if rank == 1 else 6, 4)))


@hang("dist_sync", 4, {1}, "barrier")
def one_of_four_skips_the_barrier_on_a_store(kv, rank, n):
    arrays = keys(kv)
    exchange(kv, 0, arrays[0])
    if rank != 1:
        kv._barrier()
    time.sleep(8)


@hang("dist_sync", 3, {0}, "push")
def a_layer_is_frozen_on_one_worker(kv, rank, n):
    arrays = keys(kv)
    for _ in range(3):
        for key, x in enumerate(arrays):
            if (rank, key) != (0, 2):
                exchange(kv, key, x)
    time.sleep(8)


@hang("dist_sync", 3, {2}, "push")
def one_worker_leaves_with_status_0(kv, rank, n):
    arrays = keys(kv)
    for number in range(3):
        if (rank, number) == (2, 1):
            os._exit(0)
        exchange(kv, 1, arrays[1])


@hang("dist_sync", 3, {1}, "push")
def one_worker_pushes_a_shorter_list(kv, rank, n):
    arrays = keys(kv)
    for number in range(3):
        many = [0, 1] if (rank, number) == (1, 1) else [0, 1, 2]
        kv.push(many, [arrays[key] for key in many])
        for key in many:
            kv.pull(key, out=arrays[key])
            arrays[key].wait_to_read()
    time.sleep(8)


@hang("dist_sync", 2, {1}, "push")
def the_loader_of_one_worker_is_empty(kv, rank, n):
    import queue

    arrays, batches = keys(kv), queue.Queue()
    for number in range(3):
        if (rank, number) != (1, 2):
            batches.put(number)
        batches.get()
        exchange(kv, 0, arrays[0])


@hang("dist_sync", 3, {2}, "push")
def one_worker_has_no_batch_at_all(kv, rank, n):
    arrays = keys(kv)
    for _ in range(0 if rank == 2 else 2):
        exchange(kv, 2, arrays[2])
    kv._barrier()


if __name__ == "__main__":
    words, named, worst = sys.argv[1:], 0, 0.0
    chosen = [h for h in HANGS if not words or any(w in h.name for w in words)]
    for one in chosen:
        begun = time.monotonic()
        trial = run(one)
        right = trial.names(one)
        named, worst = named + right, max(worst, trial.late)
        print(f"{'named' if right else 'WRONG'}  {one.name}, {one.op}: "
              f"{trial.op} of ranks {list(trial.ranks)}, {trial.late:.2f} s late, "
              f"{time.monotonic() - begun:.0f} s", flush=True)
        if not right or "-v" in words:
            print("    " + trial.said.replace("\n", "\n    "), flush=True)
    print(f"{named} of {len(chosen)} named, at most {worst:.2f} s after the time-out")
